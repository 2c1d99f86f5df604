package proc

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Client calls a group of managers, any of which may be dead, from many goroutines at once.
type Client struct {
	conns   []*grpc.ClientConn
	timeout time.Duration
}

// Dial returns a client of the managers at these addresses. The timeout is that of one call to
// one manager.
func Dial(addrs []string, secured credentials.TransportCredentials, timeout time.Duration, options ...grpc.DialOption) (*Client, error) {
	c := &Client{timeout: timeout}
	// Managers are killed and started again, and then called at once.
	soon := grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond},
		MinConnectTimeout: time.Second,
	}
	all := append(wire.DialOptions(), grpc.WithTransportCredentials(secured), grpc.WithConnectParams(soon))
	for _, addr := range addrs {
		conn, err := grpc.NewClient("passthrough:///"+addr, append(all, options...)...)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.conns = append(c.conns, conn)
	}
	return c, nil
}

// Close closes all connections.
func (c *Client) Close() {
	for _, conn := range c.conns {
		_ = conn.Close() // calls on it have ended
	}
}

// First calls one server after the other, and returns the index of the first whose call
// returns no error. The servers need not be managers.
func (c *Client) First(ctx context.Context, call func(context.Context, grpc.ClientConnInterface) error) (int, error) {
	failed := errors.New("no server answers")
	for i := range c.conns {
		err := c.On(ctx, i, call)
		if err == nil {
			return i, nil
		}
		failed = errors.Join(failed, err)
	}
	return 0, failed
}

// On calls the server with an index, with the timeout.
func (c *Client) On(ctx context.Context, i int, call func(context.Context, grpc.ClientConnInterface) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return wire.ToError(call(ctx, c.conns[i]))
}

// Leader returns the address of the leader of the latest term that any manager knows, and
// that term. It asks all managers at once.
func (c *Client) Leader(ctx context.Context) (addr string, term leasehold.Term, err error) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	for i := range c.conns {
		asking.Go(func() {
			var s *leaseholdv1.GetStatusResponse
			failed := c.On(ctx, i, func(ctx context.Context, to grpc.ClientConnInterface) (err error) {
				s, err = leaseholdv1.NewAdminServiceClient(to).GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, failed)
			if failed == nil && s.GetLeader() != "" && leasehold.Term(s.GetTerm()) >= term {
				addr, term = s.GetLeader(), leasehold.Term(s.GetTerm())
			}
		})
	}
	asking.Wait()
	if addr == "" {
		return "", 0, leasehold.Errorf("leader", leasehold.ErrUnavailable, "", "no manager leads: %w", err)
	}
	return addr, term, nil
}

// CreateNamespace creates a namespace and reports whether there was none.
func (c *Client) CreateNamespace(ctx context.Context, config *leaseholdv1.NamespaceConfig) (created bool, err error) {
	_, err = c.First(ctx, func(ctx context.Context, to grpc.ClientConnInterface) error {
		_, err := leaseholdv1.NewAdminServiceClient(to).CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config})
		if created = err == nil; leasehold.KindOf(wire.ToError(err)) == leasehold.ErrExists {
			return nil
		}
		return err
	})
	return created, err
}

// Until tries something until there is no error. It returns the last error if the context ends.
func Until(ctx context.Context, try func(context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if !Pause(ctx, 20*time.Millisecond) {
			return errors.Join(err, ctx.Err())
		}
	}
}

// Pause waits, and reports whether the context has not ended.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
