package managerconn

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/runtime/managerdns"
)

// A Stream is a client's end of a stream, such as a grpc.BidiStreamingClient[Req, Resp].
type Stream[Req, Resp any] interface {
	Send(*Req) error
	Recv() (*Resp, error)
}

// Config configures a Link.
type Config[Req, Resp any] struct {
	// Managers are the targets of the group: see package managerdns. At least one.
	Managers []string
	// Resolver resolves the names in Managers, and the hosts of their addresses. Default: that of the system.
	Resolver managerdns.Resolver
	// Changed, if set, is called with the addresses of the managers when they were resolved, and after each
	// change. It is not called if all targets are addresses. It then sends what it has sent to all managers before
	// their addresses were resolved: without Changed, the link sends the newest of these messages.
	Changed func(addrs []string)
	// DialOptions follow the link's own and override them. They must contain transport
	// credentials.
	DialOptions []grpc.DialOption

	// Open opens a stream. It ends with the context.
	Open func(context.Context, grpc.ClientConnInterface) (Stream[Req, Resp], error)

	// Receive is called for each message, one at a time per manager, and concurrently for
	// several managers. Close waits for it.
	Receive func(from string, message *Resp)

	// Down, if set, is called with the reason when a stream could not be opened or has failed,
	// after its last Receive. It is not called for streams that the link closes.
	Down func(from string, reason error)

	// Unresolved, if set, is called with the reason when a target could not be resolved, after Changed.
	Unresolved func(target string, reason error)

	// Logger logs the same at level debug. Default none.
	Logger *slog.Logger

	// Idle is the least idle timeout of a stream without messages to send; it is at most twice that. The manager of the last Send
	// to a single manager is exempt, because it may send messages on its own. Default 30 s.
	Idle time.Duration

	// MaxUnlisted is the maximum number of streams to managers that are not in Managers, such as the leader of
	// a redirect. One more replaces the least recently used. Default 4.
	MaxUnlisted int
}

func (c *Config[Req, Resp]) setDefaults() {
	if c.Down == nil {
		c.Down = func(string, error) {}
	}
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Idle <= 0 {
		c.Idle = 30 * time.Second
	}
	if c.MaxUnlisted <= 0 {
		c.MaxUnlisted = 4
	}
}

// A Link sends messages to a group of managers and receives theirs. It is safe for concurrent use. Receive
// and Down may call its methods except Close.
type Link[Req, Resp any] struct {
	cfg     Config[Req, Resp]
	group   *managerdns.Group
	ctx     context.Context // ends when the link is closed
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex // never held during blocking operations
	closed   bool
	dynamic  bool     // names are to be resolved, which begins with the first message
	managers []string // addresses; replaced, not modified
	resolved bool     // managers is complete
	pending  *Req     // for all managers, until the first addresses are resolved
	peers    map[string]*peer[Req, Resp]
	current  string // manager of the last Send to a single manager
	sends    uint64 // number of messages, for least recently used
}

// New returns a link without connections. It fails if a target is invalid.
func New[Req, Resp any](cfg Config[Req, Resp]) (*Link[Req, Resp], error) {
	cfg.setDefaults()
	l := &Link[Req, Resp]{cfg: cfg, peers: make(map[string]*peer[Req, Resp])}
	var err error
	l.group, err = managerdns.New(managerdns.Config{
		Targets: cfg.Managers, Resolver: cfg.Resolver, Changed: l.replace, Failed: cfg.Unresolved, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	l.managers = l.group.Fixed()
	l.ctx, l.cancel = context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	l.resolved = len(l.managers) == len(cfg.Managers)
	l.dynamic = !l.resolved
	return l, nil
}

// replace replaces the addresses of the managers.
func (l *Link[Req, Resp]) replace(addrs []string) {
	l.mu.Lock()
	l.managers, l.resolved = addrs, true
	if message := l.pending; message != nil {
		l.pending = nil
		l.broadcast(message)
	}
	l.mu.Unlock()
	if l.cfg.Changed != nil {
		l.cfg.Changed(addrs)
	}
}

// Resolved reports whether Managers returns all managers: all names were resolved once, or could not be resolved.
func (l *Link[Req, Resp]) Resolved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resolved
}

// Managers returns the current addresses of the managers. The caller must not modify them.
func (l *Link[Req, Resp]) Managers() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.managers
}

// Send sends a message to one manager, listed or not, or to all listed managers if to is empty. It does not
// block. The caller must not modify the message afterwards.
func (l *Link[Req, Resp]) Send(to string, message *Req) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dynamic && !l.closed {
		l.dynamic = false
		l.running.Go(func() { l.group.Run(l.ctx) })
	}
	if to != "" {
		l.current = to
		l.put(to, message)
		return
	}
	l.broadcast(message)
}

// broadcast queues a message for all listed managers. l.mu is held.
func (l *Link[Req, Resp]) broadcast(message *Req) {
	if len(l.managers) == 0 && l.cfg.Changed == nil {
		l.pending = message
	}
	for _, each := range l.managers {
		l.put(each, message)
	}
}

// Close closes all streams and waits for all goroutines of the link. It may be called more than once.
func (l *Link[Req, Resp]) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.running.Wait()
}

// put queues a message for a manager. l.mu is held.
func (l *Link[Req, Resp]) put(to string, message *Req) {
	if l.closed {
		return
	}
	p := l.peers[to]
	if p == nil {
		l.evictFor(to)
		p = newPeer(l, to)
		l.peers[to] = p
		l.running.Go(p.run)
	}
	l.sends++
	p.lastSend = l.sends
	p.enqueue(message)
}

// evictFor closes the least recently used unlisted peer if a new one exceeds the limit.
func (l *Link[Req, Resp]) evictFor(to string) {
	if slices.Contains(l.managers, to) {
		return
	}
	var oldest *peer[Req, Resp]
	unlisted := 0
	for addr, p := range l.peers {
		if slices.Contains(l.managers, addr) {
			continue
		}
		unlisted++
		if oldest == nil || p.lastSend < oldest.lastSend {
			oldest = p
		}
	}
	if unlisted >= l.cfg.MaxUnlisted {
		delete(l.peers, oldest.addr)
		oldest.cancel()
	}
}

// retire removes an idle peer, and reports whether it did. A peer with a queued message and the current one
// stay.
func (l *Link[Req, Resp]) retire(p *peer[Req, Resp]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.addr == l.current || len(p.queue) > 0 {
		return false
	}
	if l.peers[p.addr] == p {
		delete(l.peers, p.addr)
	}
	return true
}

func (l *Link[Req, Resp]) down(from string, reason error) {
	l.cfg.Logger.Debug("stream to manager ended", "manager", from, "reason", reason)
	l.group.Refresh()
	l.cfg.Down(from, reason)
}
