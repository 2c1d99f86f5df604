package leasegrpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/keybalancer"
	"github.com/leasehold-dev/leasehold/internal/runtime/watcher"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

func (c *client) unary(ctx context.Context, name string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	call := c.describe(name, options)
	if err := call.find(name, request); err != nil {
		return err
	}
	if call.keyed {
		ctx = setKeyHeader(ctx, call.key)
	} else {
		ctx = removeKeyHeader(ctx)
	}
	return c.do(ctx, &call, func(attempt context.Context, addr string) error {
		attempt = keybalancer.WithOwner(attempt, call.key, addr)
		err := invoke(attempt, name, request, reply, cc, options...)
		return c.endedError(ctx, attempt, addr, err)
	})
}

// setKeyHeader returns the context of a call with the key in a header. A header that differs
// from call to call cannot be compressed, and costs more than the rest of the routing. So a
// call with the key in its request has none.
func setKeyHeader(ctx context.Context, key leasehold.Key) context.Context {
	return metadata.AppendToOutgoingContext(removeKeyHeader(ctx), keyHeader, formatKey(key))
}

// removeKeyHeader returns the context of a call without the headers of its key. A handler that forwards
// its incoming metadata has the key of that call in it.
func removeKeyHeader(ctx context.Context) context.Context {
	if metadata.ValueFromOutgoingContext(ctx, keyHeader) == nil {
		return ctx // then the other header has no effect
	}
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	delete(md, keyHeader)
	delete(md, kindHeader)
	return metadata.NewOutgoingContext(ctx, md)
}

// formatKey is Key.String in a quarter of the time.
func formatKey(key leasehold.Key) string {
	var out [16]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = "0123456789abcdef"[key&15]
		key >>= 4
	}
	return string(out[:])
}

// do makes a call, and retries it like [lookup.Lookup.Do].
func (c *client) do(ctx context.Context, call *call, try func(attempt context.Context, addr string) error) error {
	options := c.notIdempotent
	if call.idempotent {
		options = c.idempotent
	}
	err := c.lookup.Do(ctx, call.key, func(attempt context.Context, addr string) error {
		return c.classify(call, try(attempt, addr))
	}, options...)
	return c.result(call, err)
}

func (c *client) retryable(call *call, err error) bool {
	switch leasehold.KindOf(c.classify(call, err)) {
	case retryElsewhere, retryHere, neverSent:
		return true
	case mayBeExecuted:
		return call.idempotent
	default:
		return false
	}
}

// A classified error is the error of an attempt with the kind by which lookup.Do retries.
type classified struct {
	kind leasehold.Kind
	err  error
}

func (v *classified) Error() string { return v.err.Error() }

func (v *classified) Unwrap() []error { return []error{v.kind, v.err} }

// The classes of errors.
const (
	retryElsewhere = leasehold.ErrNotOwner      // not executed
	retryHere      = leasehold.ErrSuspended     // not executed; the server is still the owner
	neverSent      = leasehold.ErrNoOwner       // not sent
	mayBeExecuted  = leasehold.ErrIndeterminate // retried if idempotent
	finalResult    = leasehold.ErrInternal      // not retried
)

// endedError returns the error of an attempt whose context may have ended. The status of gRPC
// does not tell whether the attempt was sent, nor whether the call has ended or its key has moved.
func (c *client) endedError(call, attempt context.Context, addr string, err error) error {
	code := status.Code(err)
	if code != codes.Canceled && code != codes.DeadlineExceeded || info(c.namespace, err) != nil {
		return err
	}
	switch {
	case call.Err() != nil && keybalancer.Sent(attempt):
		return &classified{mayBeExecuted, err}
	case call.Err() != nil:
		return &classified{neverSent, err}
	case errors.Is(context.Cause(attempt), watcher.ErrMoved):
		return asFailure(leasehold.Errorf(opCall, leasehold.ErrIndeterminate, addr, "%w: the call may have been executed", watcher.ErrMoved))
	}
	return err
}

// classify returns the class of an attempt's error. An application may return any code, so
// that only marked statuses count, except Unavailable, which gRPC itself returns for a broken
// connection. It records in the call that the attempt may have been executed.
func (c *client) classify(call *call, err error) error {
	if err == nil {
		return nil
	}
	if wrong := fieldMismatch(c.namespace, call, err); wrong != nil {
		return &classified{finalResult, wrong}
	}
	var (
		unsent *keybalancer.NotSent
		known  *classified
	)
	switch {
	case errors.As(err, &known):
		call.indeterminate = call.indeterminate || known.kind == mayBeExecuted
		return known
	case errors.As(err, &unsent):
		if kind := leasehold.KindOf(unsent.Err); kind == leasehold.ErrNoOwner || kind == leasehold.ErrUnavailable {
			return &classified{neverSent, err}
		}
		return &classified{finalResult, err}
	case isRejectionOf(c.namespace, call.key, err):
		if leasehold.KindOf(wire.ToError(err)) == leasehold.ErrSuspended {
			return &classified{retryHere, err}
		}
		return &classified{retryElsewhere, err}
	case status.Code(err) == codes.Unavailable:
		call.indeterminate = true
		return &classified{mayBeExecuted, err}
	default:
		return &classified{finalResult, err}
	}
}

// result returns the error for the application: that of the last attempt, or of Do. If an
// attempt may have been executed, it is indeterminate, even if the last one was not sent.
func (c *client) result(call *call, err error) error {
	if err == nil {
		return nil
	}
	v, last := err.(*classified) //nolint:errorlint // a wrapped one is not of the last attempt
	var unsent *keybalancer.NotSent
	if last && (!call.indeterminate || !errors.As(v.err, &unsent)) {
		if v.kind == mayBeExecuted && info(c.namespace, v.err) == nil {
			return v // gRPC's status, with a kind
		}
		return translate(c.namespace, call.key, v.err)
	}
	if call.indeterminate {
		err = leasehold.Errorf(opCall, leasehold.ErrIndeterminate, call.key.String(),
			"an attempt may have been executed; the last error is: %w", err)
	}
	return asFailure(err)
}
