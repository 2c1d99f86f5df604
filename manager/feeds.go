package manager

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// feeds are the streams on which a standby follows the leader's tables for its
// own lookups: one per namespace, over one connection.
type feeds struct {
	m       *Manager
	conn    *leaderConn // separate, so that many streams do not delay other calls
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[leasehold.Namespace]*feed
	denied time.Time // of the last log line
}

// A feed is one such stream.
type feed struct {
	to     string
	cancel context.CancelFunc
	// mailbox has the newest unsent request.
	mailbox chan *leaseholdv1.FollowRequest
}

func newFeeds(m *Manager) *feeds {
	return &feeds{m: m, conn: newLeaderConn(m), open: make(map[leasehold.Namespace]*feed)}
}

// send sends a request to the leader, over the open stream or a new one. It replaces an unsent
// request. Only a step of the machine calls it.
func (f *feeds) send(a managerproc.Follow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	to := string(a.To)
	at := f.open[a.Namespace]
	if at == nil || at.to != to {
		if at != nil {
			at.cancel()
		}
		ctx, cancel := context.WithCancel(f.m.ctx)
		at = &feed{to: to, cancel: cancel, mailbox: make(chan *leaseholdv1.FollowRequest, 1)}
		f.open[a.Namespace] = at
		f.running.Go(func() {
			defer f.remove(a.Namespace, at)
			f.run(ctx, a.Namespace, at)
		})
	}
	select {
	case <-at.mailbox:
	default:
	}
	at.mailbox <- wire.FromLookupRequest(a.Request)
}

func (f *feeds) remove(ns leasehold.Namespace, at *feed) {
	at.cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[ns] == at {
		delete(f.open, ns)
	}
}

// run follows one namespace until the stream breaks. The machine then sends another request
// after a timeout, which opens a new stream.
func (f *feeds) run(ctx context.Context, ns leasehold.Namespace, at *feed) {
	conn, err := f.conn.to(at.to)
	if err != nil {
		f.m.log.Debug("cannot follow the leader", "leader", at.to, "why", err)
		return
	}
	stream, err := leaseholdv1.NewLookupServiceClient(conn).Follow(ctx)
	if err != nil {
		f.m.log.Debug("cannot follow the leader", "leader", at.to, "namespace", ns, "why", wire.ToError(err))
		return
	}
	failpoint.Here("manager/follows-leader")
	f.running.Go(func() {
		defer at.cancel()
		for {
			message, err := stream.Recv()
			if err != nil {
				f.logDenied(at.to, wire.ToError(err))
				return
			}
			if event := toLookupEvent(message); event != nil && !failpoint.Drop("manager/leader-received") {
				f.m.driver.Post(ctx, managerproc.Followed{Namespace: ns, Event: event})
			}
		}
	})
	for {
		select {
		case <-ctx.Done():
			return
		case request := <-at.mailbox:
			if stream.Send(request) != nil {
				return
			}
		}
	}
}

// logDenied logs, at most once a minute, that the leader denied access: an operator must fix
// that. The machine retries every few seconds.
func (f *feeds) logDenied(leader string, why error) {
	if leasehold.KindOf(why) != leasehold.ErrDenied {
		return
	}
	f.mu.Lock()
	logged := time.Since(f.denied) < time.Minute
	if !logged {
		f.denied = time.Now()
	}
	f.mu.Unlock()
	if !logged {
		f.m.log.Error("the leader denies this standby access to its tables: its access file must give this manager the role manager", "leader", leader, "why", why)
	}
}

// toLookupEvent converts a message to an event of the machine, nil if it is invalid.
func toLookupEvent(message *leaseholdv1.FollowResponse) lookup.Event {
	switch kind := message.GetKind().(type) {
	case *leaseholdv1.FollowResponse_Update:
		if reply, err := wire.ToLookupReply(kind.Update, protocol.DefaultLimits); err == nil {
			return lookup.Reply{LookupReply: reply}
		}
	case *leaseholdv1.FollowResponse_NotLeader:
		if hint, err := wire.ToNotLeader(kind.NotLeader); err == nil {
			return lookup.Redirect{NotLeader: hint}
		}
	case *leaseholdv1.FollowResponse_Refusal:
		return lookup.Refused{Kind: leasehold.KindOf(wire.ToRefusal(kind.Refusal))}
	}
	return nil
}

// stop ends the stream of one namespace.
func (f *feeds) stop(ns leasehold.Namespace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.open[ns]; at != nil {
		at.cancel()
	}
}

// stopAll ends all streams, for instance because this manager leads.
func (f *feeds) stopAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.open {
		at.cancel()
	}
}

func (f *feeds) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.stopAll()
	f.running.Wait()
	f.conn.close()
}
