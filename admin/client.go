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
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerdns"
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
	// Managers are 1 to MaxManagers targets: addresses (host:port) of managers of one group, dns:///host:port for a manager at
	// each address of a host, or srv:///_service._proto.name for a manager at each SRV record. Names are resolved again
	// every ten seconds of use, and after no manager has responded.
	Managers []string
	// Resolver resolves names. Default: that of the system.
	Resolver Resolver
	// Timeout bounds each request. It is divided among the managers: one that accepts connections
	// but does not respond uses only its share. Default DefaultTimeout.
	Timeout time.Duration
	// Credentials are for the connections, for example secure.Keeper.Client(). Without them
	// connections are plaintext, and permitted only to the loopback interface.
	Credentials credentials.TransportCredentials
	// Token, if not nil, is sent with each request, for example access.Bearer(token).
	Token credentials.PerRPCCredentials
}

// A Resolver resolves the names of managers, as [net.Resolver] does.
type Resolver = managerdns.Resolver

func (c Config) validate() error {
	const op = "admin client"
	if len(c.Managers) == 0 || len(c.Managers) > MaxManagers {
		return leasehold.Errorf(op, leasehold.ErrInvalid, "managers", "want 1 to %d addresses, have %d", MaxManagers, len(c.Managers))
	}
	for _, addr := range c.Managers {
		if err := managerdns.Check(addr, "127.0.0.1:7400"); err != nil {
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
	managers *endpoints
}

// New returns a client. It does not connect yet.
func New(cfg Config) (*Client, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Client{timeout: cmp.Or(cfg.Timeout, DefaultTimeout)}
	var err error
	if c.managers, err = newEndpoints(cfg); err != nil {
		return nil, errors.Join(err, c.managers.close())
	}
	return c, nil
}

// Close closes the connections. Requests that are in flight fail.
func (c *Client) Close() error { return c.managers.close() }

// Timeout returns the timeout of a request.
func (c *Client) Timeout() time.Duration { return c.timeout }

// Do calls f with the raw service of one manager after the other, until f returns nil or an error that
// is not Retriable. It is for requests without a method in this package.
// f may run several times, so it must only read.
func (c *Client) Do(ctx context.Context, f func(context.Context, leaseholdv1.AdminServiceClient) error) error {
	end := time.Now().Add(c.timeout)
	bounded, cancel := context.WithDeadline(ctx, end)
	order, err := c.managers.order(bounded)
	cancel()
	if err != nil {
		return err
	}
	var reasons []string
	for i, e := range order {
		share := time.Until(end) / time.Duration(len(order)-i)
		err := e.do(ctx, share, f)
		var last final
		switch {
		case err == nil:
			c.managers.answered(e)
			return nil
		case errors.As(err, &last):
			c.managers.answered(e)
			return last.error
		case ctx.Err() != nil:
			return ctx.Err()
		case !Retriable(err) || e.addr == "":
			return err
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", e.addr, err))
	}
	c.managers.answered(nil)
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
