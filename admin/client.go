// Package admin is a client for operators and their programs. It reads the status, namespaces,
// owners, ranges and events of a group of managers, and sends orders: create a namespace, drain an owner,
// move a range.
//
//	c, err := admin.New(admin.Config{Managers: []string{"m1:7400", "m2:7400", "m3:7400"}})
//	if err != nil { ... }
//	defer c.Close()
//	owners, err := c.Owners(ctx, "presence")
//
// Any manager accepts requests, and forwards those that need the leader. A request is sent to the managers
// in turn until one responds, within Config.Timeout or the deadline of the context. Requests that change a
// namespace or a group are sent once; orders that move ranges are idempotent, and are sent to one manager
// after the other. Without a response, the error is leasehold.ErrIndeterminate: the change may have been
// made. If no manager is reachable, the error is an UnreachableError, and nothing was changed.
//
// The types of this package are the one JSON form of what managers report: the command
// "leasehold ... --json" and the dashboard encode them as they are. Numbers that are names rather
// than amounts (keys, sessions, generations, terms, LSNs, ids) are strings, because many readers of JSON
// keep only 53 bits of a number. The limit of a range is "end" at the end of the key space. Times are
// RFC 3339, durations are in seconds. Later versions may add fields; they do not rename or remove any.
//
// A Client is safe for concurrent use. Each call costs one round trip to a manager, and one more from there
// to the leader, unless its comment has another cost.
package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const (
	// DefaultTimeout is the timeout of a request unless Config has another one.
	DefaultTimeout = 5 * time.Second
	// MaxManagers is the maximum number of addresses in Config.
	MaxManagers = 64

	// leaderlessPause is the time between two attempts of a change that found no leader.
	leaderlessPause = 200 * time.Millisecond
	// maxReconnectDelay bounds gRPC's own backoff, which would otherwise exceed the timeout.
	maxReconnectDelay = 500 * time.Millisecond
)

// Config configures a Client.
type Config struct {
	// Managers are addresses, host:port, of 1 to MaxManagers managers of one group.
	Managers []string
	// Timeout bounds each request. It is divided among the managers: one that accepts connections
	// but does not respond uses only its share. Default DefaultTimeout.
	Timeout time.Duration
	// Credentials are for the connections, for example secure.Keeper.Client(). Without them
	// connections are plaintext, and permitted only to the loopback interface.
	Credentials credentials.TransportCredentials
	// Token, if not nil, is sent with each request, for example access.Bearer(token).
	Token credentials.PerRPCCredentials
}

func (c Config) validate() error {
	const op = "admin client"
	if len(c.Managers) == 0 || len(c.Managers) > MaxManagers {
		return leasehold.Errorf(op, leasehold.ErrInvalid, "managers", "want 1 to %d addresses, have %d", MaxManagers, len(c.Managers))
	}
	for _, addr := range c.Managers {
		if err := address.Check(addr, "127.0.0.1:7400"); err != nil {
			return &leasehold.Error{Op: op, Kind: leasehold.ErrInvalid, Subject: "managers", Err: err}
		}
	}
	if c.Timeout < 0 {
		return leasehold.Errorf(op, leasehold.ErrInvalid, "timeout", "%v is negative", c.Timeout)
	}
	return nil
}

// service is the raw service of a manager.
type service = leaseholdv1.AdminServiceClient

// A Client sends requests to the managers of one group.
type Client struct {
	timeout  time.Duration
	managers []*endpoint

	mu     sync.Mutex
	latest int // index of the manager that responded last; it is tried first
}

// New returns a client. It does not connect yet.
func New(cfg Config) (*Client, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Client{timeout: cfg.Timeout}
	if c.timeout == 0 {
		c.timeout = DefaultTimeout
	}
	for _, addr := range cfg.Managers {
		e, err := newEndpoint(addr, cfg)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.managers = append(c.managers, e)
	}
	return c, nil
}

// Close closes the connections. Requests that are in flight fail.
func (c *Client) Close() error {
	var errs []error
	for _, e := range c.managers {
		errs = append(errs, e.conn.Close())
	}
	return errors.Join(errs...)
}

// Timeout returns the timeout of a request.
func (c *Client) Timeout() time.Duration { return c.timeout }

// Do calls f with the raw service of one manager after the other, until f returns nil or an error that
// is not Retriable. It is for requests without a method in this package.
// f may run several times, so it must only read.
func (c *Client) Do(ctx context.Context, f func(context.Context, leaseholdv1.AdminServiceClient) error) error {
	end := time.Now().Add(c.timeout)
	var reasons []string
	order := c.order()
	for i, index := range order {
		e := c.managers[index]
		share := time.Until(end) / time.Duration(len(order)-i)
		err := e.do(ctx, share, f)
		var last final
		switch {
		case err == nil:
			c.answered(index)
			return nil
		case errors.As(err, &last):
			c.answered(index)
			return last.error
		case ctx.Err() != nil:
			return ctx.Err()
		case !Retriable(err) || e.addr == "":
			return err
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", e.addr, err))
	}
	return &UnreachableError{Reasons: reasons}
}

// read is Do for a function with a result.
func read[T any](ctx context.Context, c *Client, f func(context.Context, service) (T, error)) (result T, err error) {
	err = c.Do(ctx, func(ctx context.Context, s service) (err error) {
		result, err = f(ctx, s)
		return err
	})
	return result, err
}

// order returns the indexes of the managers, beginning with the one that responded last.
func (c *Client) order() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	order := make([]int, 0, len(c.managers))
	for i := range c.managers {
		order = append(order, (c.latest+i)%len(c.managers))
	}
	return order
}

func (c *Client) answered(index int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest = index
}

// An UnreachableError means that no manager responded. Its kind is leasehold.ErrUnavailable.
type UnreachableError struct {
	Reasons []string // for each manager: its address and the cause
}

func (e *UnreachableError) Error() string {
	return "no manager answers: " + strings.Join(e.Reasons, "; ")
}

// Unwrap makes errors.Is(err, leasehold.ErrUnavailable) true.
func (e *UnreachableError) Unwrap() error { return leasehold.ErrUnavailable }

// Retriable reports whether a failed request may succeed at another manager, or later: a manager was
// unreachable, or there was no leader.
func Retriable(err error) bool {
	return errors.Is(err, leasehold.ErrUnavailable) || errors.Is(err, leasehold.ErrNotLeader)
}

// final is an error after which no other manager is tried.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// change sends a request that changes something once. A status request first finds a responding manager. A
// change that failed for lack of a leader was not made, and is retried until the deadline.
func (c *Client) change(ctx context.Context, f func(context.Context, service) error) error {
	return c.Do(ctx, func(ctx context.Context, s service) error {
		if _, err := s.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version}); err != nil {
			return err
		}
		for {
			err := f(ctx, s)
			if _, remote := status.FromError(err); err == nil || !remote {
				return err
			}
			err = wire.ToError(err)
			switch {
			case leasehold.KindOf(err) == leasehold.ErrNotLeader && pause(ctx, leaderlessPause):
				continue
			case leasehold.KindOf(err) == leasehold.ErrUnavailable:
				err = leasehold.Errorf("", leasehold.ErrIndeterminate, "", "%w\nThe change may have been made: check before you retry.", err)
			}
			return final{err}
		}
	})
}

// pause waits, and reports whether there is time for another attempt.
func pause(ctx context.Context, d time.Duration) bool {
	if deadline, set := ctx.Deadline(); set && time.Until(deadline) < 2*d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
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
