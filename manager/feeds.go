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
// own lookups: one for each namespace, over one connection.
type feeds struct {
	m       *Manager
	conn    *leaderConn // of their own: many of them must not hold up other calls
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[leasehold.Namespace]*feed
	denied time.Time // when it was last said
}

// A feed is one such stream.
type feed struct {
	to     string
	cancel context.CancelFunc
	// mailbox holds the newest request that has not left.
	mailbox chan *leaseholdv1.FollowRequest
}

func newFeeds(m *Manager) *feeds {
	return &feeds{m: m, conn: newLeaderConn(m), open: make(map[leasehold.Namespace]*feed)}
}

// ask sends a request to the leader, over the stream that there is or a new
// one. It is asked only within a step of the machine.
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

// run follows one namespace until the stream breaks. The machine asks again if
// it is not answered, and that opens another.
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
			if event := toLookupEvent(message); event != nil && !failpoint.Drop("manager/leader-heard") {
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

// ended says that the leader does not let us follow: it is nothing that mends
// itself. It is tried again every few seconds, and said once a minute.
func (f *feeds) logDenied(leader string, why error) {
	if leasehold.KindOf(why) != leasehold.ErrDenied {
		return
	}
	f.mu.Lock()
	said := time.Since(f.denied) < time.Minute
	if !said {
		f.denied = time.Now()
	}
	f.mu.Unlock()
	if !said {
		f.m.log.Error("the leader does not permit this manager to follow: its access file must give it the role manager", "leader", leader, "why", why)
	}
}

// toLookupEvent returns what a message means to our own lookup, nil if nothing.
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

// end ends the stream of one namespace: nobody asks for it any more.
func (f *feeds) stop(ns leasehold.Namespace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.open[ns]; at != nil {
		at.cancel()
	}
}

// drop ends all streams: we lead, and follow nobody.
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
