package admin

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerdns"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// resolveEvery is the minimum time between two resolutions of names, unless no manager responds.
const resolveEvery = 10 * time.Second

// endpoints are the connections to the managers of a group.
type endpoints struct {
	cfg     Config
	dynamic bool // names are resolved

	mu       sync.Mutex
	all      []*endpoint
	latest   *endpoint // the one that responded last; it is tried first
	resolved time.Time
	closed   bool
}

func newEndpoints(cfg Config) (*endpoints, error) {
	e := &endpoints{cfg: cfg, dynamic: slices.ContainsFunc(cfg.Managers, managerdns.Dynamic)}
	if e.dynamic {
		return e, nil
	}
	return e, e.set(cfg.Managers)
}

// order returns the endpoints, beginning with the one that responded last. It resolves names if that was long ago.
func (e *endpoints) order(ctx context.Context) ([]*endpoint, error) {
	e.mu.Lock()
	due := e.dynamic && time.Since(e.resolved) >= resolveEvery
	e.mu.Unlock()
	var failed error
	if due {
		failed = e.resolve(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.all) == 0 {
		return nil, failed
	}
	i := max(0, slices.Index(e.all, e.latest))
	return slices.Concat(e.all[i:], e.all[:i]), nil // the last addresses, if the resolution failed
}

func (e *endpoints) resolve(ctx context.Context) error {
	addrs, err := managerdns.Lookup(ctx, e.cfg.Managers, e.cfg.Resolver)
	if err != nil {
		return leasehold.Errorf("", leasehold.ErrUnavailable, "", "managers cannot be resolved: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.set(addrs)
}

// set connects to new addresses, and closes the connections to others. The caller has the mutex, or is the only user.
func (e *endpoints) set(addrs []string) error {
	if e.closed {
		return leasehold.Errorf("admin client", leasehold.ErrClosed, "", "the client is closed")
	}
	var all []*endpoint
	for _, addr := range addrs {
		i := slices.IndexFunc(e.all, func(one *endpoint) bool { return one.addr == addr })
		if i >= 0 {
			all = append(all, e.all[i])
			continue
		}
		one, err := newEndpoint(addr, e.cfg)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	for _, one := range e.all {
		if !slices.Contains(all, one) {
			_ = one.conn.Close() // requests in flight fail, and are sent to another manager
		}
	}
	e.all, e.resolved = all, time.Now()
	return nil
}

// answered records which manager has responded; nil: none, so that names are resolved again.
func (e *endpoints) answered(one *endpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.latest = one; one == nil {
		e.resolved = time.Time{}
	}
}

func (e *endpoints) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	var errs []error
	for _, one := range e.all {
		errs = append(errs, one.conn.Close())
	}
	return errors.Join(errs...)
}

// An endpoint is the connection to one manager.
type endpoint struct {
	addr string // "": in this process
	conn conn
}

type conn interface {
	grpc.ClientConnInterface
	io.Closer
}

func newEndpoint(addr string, cfg Config) (*endpoint, error) {
	given := cfg.Credentials
	if given == nil {
		given = managerconn.Plaintext()
	}
	options := slices.Concat(wire.DialOptions(), []grpc.DialOption{
		grpc.WithTransportCredentials(given),
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: maxReconnectDelay / 10, Multiplier: 2, Jitter: 0.2, MaxDelay: maxReconnectDelay},
			MinConnectTimeout: DefaultTimeout,
		}),
	})
	if cfg.Token != nil {
		options = append(options, grpc.WithPerRPCCredentials(cfg.Token))
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, options...)
	if err != nil {
		return nil, wire.ToError(err)
	}
	return &endpoint{addr: addr, conn: conn}, nil
}

// do calls f with a timeout. It returns the status of a failed call as a leasehold.Error, and other errors
// of f unchanged.
func (e *endpoint) do(ctx context.Context, within time.Duration, f func(context.Context, service) error) error {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := f(bounded, leaseholdv1.NewAdminServiceClient(e.conn))
	var last final
	if err == nil || errors.As(err, &last) {
		return err
	}
	if _, remote := status.FromError(err); !remote {
		return err
	}
	err = wire.ToError(err)
	if leasehold.KindOf(err) != leasehold.ErrUnavailable {
		return err
	}
	if bounded.Err() != nil {
		return leasehold.Errorf("", leasehold.ErrUnavailable, "", "no response within %v", within.Round(time.Millisecond))
	}
	return err
}
