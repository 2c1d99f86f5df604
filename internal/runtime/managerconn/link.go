package managerconn

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// A Stream is a client's end of a conversation. A
// grpc.BidiStreamingClient[Req, Resp] is one.
type Stream[Req, Resp any] interface {
	Send(*Req) error
	Recv() (*Resp, error)
}

// Config is what a link is told when it starts.
type Config[Req, Resp any] struct {
	// Managers are the addresses of the group, host:port. At least one.
	Managers []string
	// DialOptions come after the link's own, so that they prevail. They must
	// say which credentials to use.
	DialOptions []grpc.DialOption

	// Open starts the conversation. The stream ends with the context.
	Open func(context.Context, grpc.ClientConnInterface) (Stream[Req, Resp], error)

	// Receive is called with each message, one at a time for each manager, and
	// for several managers at once. While it has not returned, nothing more is
	// received from that manager, and Close waits for it.
	Receive func(from string, message *Resp)

	// Down, if set, is called when a conversation could not be started or has
	// broken, with the reason; after the last Receive of that conversation.
	// It is not called for conversations that the link itself ends.
	Down func(from string, why error)

	// Logger gets the same, at debug. Default: none.
	Logger *slog.Logger

	// Idle is after how long without anything to send a conversation ends. The
	// manager that was last spoken to alone is exempt: it may have something to
	// say unasked. Default 30 s.
	Idle time.Duration

	// Strangers bounds the conversations with managers that are not in
	// Managers: leaders that others have pointed to. One more replaces the one
	// that was spoken to least recently. Default 4.
	Strangers int
}

func (c *Config[Req, Resp]) setDefaults() {
	if c.Down == nil {
		c.Down = func(string, error) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Idle <= 0 {
		c.Idle = 30 * time.Second
	}
	if c.Strangers <= 0 {
		c.Strangers = 4
	}
}

// A Link speaks to a group of managers. Its methods may be called from many
// goroutines at once, and from within Receive and Down, except for Close.
type Link[Req, Resp any] struct {
	cfg    Config[Req, Resp]
	ctx    context.Context // ends when the link is closed
	cancel context.CancelFunc
	ended  sync.WaitGroup // counts peers, and whatever they start

	mu      sync.Mutex // never held while anything waits
	closed  bool
	peers   map[string]*peer[Req, Resp]
	current string // who was last spoken to alone
	clock   uint64 // numbers what is sent, to tell who was spoken to when
}

// New returns a link that has no connection yet.
func New[Req, Resp any](cfg Config[Req, Resp]) *Link[Req, Resp] {
	cfg.setDefaults()
	l := &Link[Req, Resp]{cfg: cfg, peers: make(map[string]*peer[Req, Resp])}
	l.ctx, l.cancel = context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	return l
}

// Send hands a message to one manager, in the list or not, or to every one in
// the list if to is empty. It does not wait. The message must not change
// afterwards.
func (l *Link[Req, Resp]) Send(to string, message *Req) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to != "" {
		l.current = to
		l.put(to, message)
		return
	}
	for _, each := range l.cfg.Managers {
		l.put(each, message)
	}
}

// Close ends all conversations and waits until nothing of the link runs any
// more. It may be called more than once.
func (l *Link[Req, Resp]) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.ended.Wait()
}

// put leaves a message for a manager. The caller holds the lock.
func (l *Link[Req, Resp]) put(to string, message *Req) {
	if l.closed {
		return
	}
	p := l.peers[to]
	if p == nil {
		l.makeRoom(to)
		p = newPeer(l, to)
		l.peers[to] = p
		l.ended.Go(p.run)
	}
	l.clock++
	p.used = l.clock
	p.leave(message)
}

// makeRoom ends the conversation with the stranger that was spoken to least
// recently, if another one would be one too many.
func (l *Link[Req, Resp]) makeRoom(to string) {
	if slices.Contains(l.cfg.Managers, to) {
		return
	}
	var oldest *peer[Req, Resp]
	strangers := 0
	for addr, p := range l.peers {
		if slices.Contains(l.cfg.Managers, addr) {
			continue
		}
		strangers++
		if oldest == nil || p.used < oldest.used {
			oldest = p
		}
	}
	if strangers >= l.cfg.Strangers {
		delete(l.peers, oldest.addr)
		oldest.cancel()
	}
}

// retire forgets a peer that has had nothing to send for long, and reports
// whether it may end. It may not if a message has just been left for it, or if
// it is the one that we listen to.
func (l *Link[Req, Resp]) retire(p *peer[Req, Resp]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.addr == l.current || len(p.mailbox) > 0 {
		return false
	}
	if l.peers[p.addr] == p {
		delete(l.peers, p.addr)
	}
	return true
}

func (l *Link[Req, Resp]) down(from string, why error) {
	l.cfg.Logger.Debug("conversation with manager ended", "manager", from, "why", why)
	l.cfg.Down(from, why)
}
