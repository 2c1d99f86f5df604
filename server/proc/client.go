package proc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Client calls a group of managers, any of which may be dead. It may be used from many
// goroutines at once.
type Client struct {
	conns   []*grpc.ClientConn
	timeout time.Duration
}

// A Question is a call of one manager.
type Question func(context.Context, leaseholdv1.AdminServiceClient) error

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

// Len is the number of managers.
func (c *Client) Len() int { return len(c.conns) }

// At calls the manager with an index, without a timeout.
func (c *Client) At(i int) leaseholdv1.AdminServiceClient {
	return leaseholdv1.NewAdminServiceClient(c.conns[i])
}

// Ask calls one manager after the other until one answers, or returns one of the final errors,
// which all others would return, too.
func (c *Client) Ask(ctx context.Context, question Question, final ...error) error {
	var failed error
	for i := range c.conns {
		err := c.ask(ctx, i, question)
		if err == nil || slices.ContainsFunc(final, func(f error) bool { return errors.Is(err, f) }) {
			return err
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func (c *Client) ask(ctx context.Context, i int, question Question) error {
	return c.On(ctx, i, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		return question(ctx, leaseholdv1.NewAdminServiceClient(conn))
	})
}

// First returns the index of the first server at these addresses, which need be no manager,
// whose call returns no error.
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

// On makes a call on the connection to one of them, with the timeout.
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
			failed := c.ask(ctx, i, func(ctx context.Context, to leaseholdv1.AdminServiceClient) (err error) {
				s, err = to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
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
	err = c.Ask(ctx, func(ctx context.Context, to leaseholdv1.AdminServiceClient) error {
		_, err := to.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config})
		return err
	}, leasehold.ErrExists)
	if errors.Is(err, leasehold.ErrExists) {
		return false, nil
	}
	return err == nil, err
}

// Until tries something until there is no error. It returns the last error if the context ends.
func Until(ctx context.Context, try func(context.Context) error) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}
