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
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

func (c *client) unary(ctx context.Context, name string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	call := c.describe(name, options)
	if err := call.find(name, request); err != nil {
		return err
	}
	if call.keyed {
		ctx = announce(ctx, call.key)
	} else {
		ctx = silence(ctx)
	}
	return c.do(ctx, &call, func(ctx context.Context) error {
		return invoke(ctx, name, request, reply, cc, options...)
	})
}

// announce returns the context of a call that tells its server the key. It is not
// free: what differs from call to call cannot be compressed, and costs more than all
// else that is done here. So a call whose server finds the key in the request does
// without.
func announce(ctx context.Context, key leasehold.Key) context.Context {
	return metadata.AppendToOutgoingContext(silence(ctx), keyHeader, digits(key))
}

// silence returns the context of a call that tells its server no key. There may be
// another one's: a handler that passes on the metadata which it was called with has
// the key of that call in it.
func silence(ctx context.Context) context.Context {
	if metadata.ValueFromOutgoingContext(ctx, keyHeader) == nil {
		return ctx
	}
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	delete(md, keyHeader)
	return metadata.NewOutgoingContext(ctx, md)
}

// digits is what Key.String writes, in a quarter of the time.
func digits(key leasehold.Key) string {
	var out [16]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = "0123456789abcdef"[key&15]
		key >>= 4
	}
	return string(out[:])
}

// do makes a call, and makes it again as [lookup.Lookup.Do] does, for as long as
// that is of use and does no harm.
func (c *client) do(ctx context.Context, call *call, try func(context.Context) error) error {
	ctx = keybalancer.WithKey(ctx, call.key)
	options := c.once
	if call.idempotent {
		options = c.idempotent
	}
	err := c.lookup.Do(ctx, call.key, func(ctx context.Context, _ string) error {
		return c.judge(call, try(ctx))
	}, options...)
	return c.outcome(call, err)
}

func (c *client) again(call *call, err error) bool {
	switch leasehold.KindOf(c.judge(call, err)) {
	case tryAgain, waitAndTry, nowhereToGo:
		return true
	case maybeDone:
		return call.idempotent
	default:
		return false
	}
}

// A verdict is an error of a call, and what is to be made of it. Its kind is what
// lookup.Do sees.
type verdict struct {
	kind leasehold.Kind
	err  error
}

func (v *verdict) Error() string { return v.err.Error() }

func (v *verdict) Unwrap() []error { return []error{v.kind, v.err} }

// The verdicts.
const (
	tryAgain     = leasehold.ErrNotOwner      // nothing was done
	waitAndTry   = leasehold.ErrSuspended     // nothing was done, and no other server would do it
	nowhereToGo  = leasehold.ErrNoOwner       // nothing was sent
	maybeDone    = leasehold.ErrIndeterminate // to be tried again if that does no harm
	thatIsAnswer = leasehold.ErrInternal      // Do knows nothing to do about it
)

// judge says what an error of a call means. Codes alone say little, since an
// application may use each of them; only Unavailable is gRPC's own word for a server
// that has gone away. What may have been done is noted in the call.
func (c *client) judge(call *call, err error) error {
	if err == nil {
		return nil
	}
	if wrong := misread(c.namespace, call, err); wrong != nil {
		return &verdict{thatIsAnswer, wrong}
	}
	var unsent *keybalancer.NotSent
	switch {
	case errors.As(err, &unsent):
		if kind := leasehold.KindOf(unsent.Err); kind == leasehold.ErrNoOwner || kind == leasehold.ErrUnavailable {
			return &verdict{nowhereToGo, err}
		}
		return &verdict{thatIsAnswer, err}
	case refused(c.namespace, call.key, err):
		if leasehold.KindOf(wire.ToError(err)) == leasehold.ErrSuspended {
			return &verdict{waitAndTry, err}
		}
		return &verdict{tryAgain, err}
	case status.Code(err) == codes.Unavailable:
		call.maybe = true
		return &verdict{maybeDone, err}
	default:
		return &verdict{thatIsAnswer, err}
	}
}

// outcome is what the application gets: the answer of the last attempt, or that
// there were enough of them. If one may have been carried out, that the last was not
// says nothing of the call.
func (c *client) outcome(call *call, err error) error {
	if err == nil {
		return nil
	}
	v, last := err.(*verdict) //nolint:errorlint // what is wrapped is not the last word
	var unsent *keybalancer.NotSent
	if last && (!call.maybe || !errors.As(v.err, &unsent)) {
		if v.kind == maybeDone && info(c.namespace, v.err) == nil {
			return v // gRPC's status, with a kind
		}
		return translate(c.namespace, call.key, v.err)
	}
	if call.maybe {
		err = leasehold.Errorf(opCall, leasehold.ErrIndeterminate, call.key.String(),
			"an attempt may have been carried out, or not; in the end: %w", err)
	}
	return failed(err)
}
