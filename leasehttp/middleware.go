package leasehttp

import (
	"context"
	"net/http"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// DefaultHoldBack is the number of bytes of a response that [Middleware] buffers.
const DefaultHoldBack = 64 << 10

// A MiddlewareOption is an option of [Middleware].
type MiddlewareOption func(*guard)

// WithHoldBack sets the number of bytes of a response that are buffered until the lease is
// confirmed. With more, longer responses can be replaced by an error, at the cost of memory
// for each request. 0 buffers only the header, until the first byte. It panics if bytes is
// negative.
func WithHoldBack(bytes int) MiddlewareOption {
	if bytes < 0 {
		panic(leasehold.Errorf("hold back", leasehold.ErrInvalid, "", "%d bytes: want 0 or more", bytes))
	}
	return func(g *guard) { g.holdBack = bytes }
}

// Middleware wraps the handler of a server, so that it serves only keys that this process
// owns:
//
//   - It derives the key, and responds with 400 if there is none.
//   - It waits for a key whose move to this server is in progress ([owner.Owner.Await]) and
//     checks the lease. Without a lease it responds with 421 and [HeaderRefused], and with
//     503 and [RefusedSuspended] if the lease is suspended. The handler is not called, and
//     the body is not read.
//   - It calls the handler, with the lease in the context: see [Lease].
//   - Before the response is sent, it checks that the lease was held without a gap. If not,
//     the response is replaced by 503 and [HeaderRefused].
//
// These are the steps 1 and 4 of a server's duties, see package leasehold. The handler does
// the rest, under a lock: it discards state that is older than the lease's generation,
// rejects the request if the state is newer, and stores the generation with new state. The
// lease may end while the handler waits for the lock. Then it must check again under the
// lock, and call [WriteError] with [leasehold.ErrNotOwner] if that fails.
//
// # Long responses
//
// A response can be replaced only while nothing of it was sent. Up to 64 KiB are buffered,
// see [WithHoldBack], until the handler returns, flushes, or writes more. After that, each
// write checks the lease, and fails with [leasehold.ErrIndeterminate] if it has ended. The
// connection is then closed, so that the caller detects the incomplete response.
//
// When the lease has ended, a request's context is cancelled within about a second, with a
// cause of kind [leasehold.ErrIndeterminate], and a hijacked connection, such as a WebSocket,
// is closed. Each write to a hijacked connection checks the lease, as above. The caller
// reconnects to the next owner. A suspended lease has not ended: contexts and idle
// connections outlive an outage of the managers, but writes fail meanwhile.
//
// Middleware panics if the source is the zero Source. It costs two checks, a timer, and a
// copy of the response.
func Middleware(o owner.Checker, key Source, options ...MiddlewareOption) func(http.Handler) http.Handler {
	if !key.valid() {
		panic(leasehold.Errorf("middleware", leasehold.ErrInvalid, "", "the key source is required: use Header, for example"))
	}
	g := &guard{owner: o, source: key, holdBack: DefaultHoldBack}
	for _, option := range options {
		option(g)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, next) })
	}
}

// Lease returns the lease that [Middleware] has checked for a request.
func Lease(ctx context.Context) (owner.Lease, bool) {
	l, ok := ctx.Value(leaseKey{}).(owner.Lease)
	return l, ok
}

type leaseKey struct{}

type guard struct {
	owner    owner.Checker
	source   Source
	holdBack int
}

func (g *guard) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	name, err := g.source.Name(r)
	if err != nil {
		explain(w, http.StatusBadRequest, leasehold.ErrInvalid, err.Error())
		return
	}
	key := leasehold.KeyOf(name)
	if routed := r.Header.Get(HeaderKey); routed != "" && routed != key.String() {
		w.Header().Set(HeaderRefused, RefusedOtherKey)
		setRefusedKey(w.Header(), name, key)
		explain(w, http.StatusBadRequest, leasehold.ErrInvalid,
			"the request was routed by key "+clip(routed)+", but this server derives "+key.String()+" from "+g.source.String()+
				": configure the same source for gateways and servers")
		return
	}
	_ = g.owner.Await(r.Context(), key) // Check has the result
	lease, ok := g.owner.Check(key)
	if !ok {
		setRefusedKey(w.Header(), name, key)
		why := errNotOwner
		if g.owner.Suspended(key) {
			why = errSuspended
		}
		WriteError(w, why)
		return
	}
	ctx, end := context.WithCancelCause(context.WithValue(r.Context(), leaseKey{}, lease))
	defer end(nil)
	t := newLeaseMonitor(g.owner, lease, end)
	defer t.release()
	h := newHeldBack(w, t, g.holdBack)
	next.ServeHTTP(h, r.WithContext(ctx))
	h.finish()
}
