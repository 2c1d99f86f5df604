package leasehttp

import (
	"context"
	"net/http"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// DefaultHoldBack is how much of an answer [Middleware] holds back, in bytes.
const DefaultHoldBack = 64 << 10

// A MiddlewareOption changes what [Middleware] does.
type MiddlewareOption func(*guard)

// WithHoldBack sets how much of an answer is held back until the lease has been
// confirmed, in bytes. More makes longer answers safe, and takes as much memory
// for each request under way. It panics if it is negative; 0 holds back only the
// header, until the first byte.
func WithHoldBack(bytes int) MiddlewareOption {
	if bytes < 0 {
		panic(leasehold.Errorf("hold back", leasehold.ErrInvalid, "", "%d bytes: want 0 or more", bytes))
	}
	return func(g *guard) { g.holdBack = bytes }
}

// Middleware wraps the handler of a server, so that it serves only keys that
// this process owns:
//
//   - It finds the key, and answers 400 if there is none.
//   - It waits for a key that is about to arrive ([owner.Owner.Await]), checks the
//     lease, and refuses with 421 and [HeaderRefused] if it has none, and with 503
//     and [RefusedSuspended] if that is suspended. The handler is not called, and the
//     body is not read.
//   - It calls the handler, with the lease in the context: see [Lease].
//   - It asks whether the lease was held all the while, before the answer leaves.
//     If it was not, the answer is replaced by 503 and [HeaderRefused].
//
// These are the steps 1 and 4 of what a server must do, see package leasehold.
// What is between them stays the handler's: to discard state that is older than
// the lease's generation, to refuse if it is newer, to stamp what it stores, and
// to do that under a lock. A lease that was checked before the lock was taken may
// be over when it is, so a handler whose requests wait for each other checks again
// under its lock, and calls [WriteError] with [leasehold.ErrNotOwner] if that fails.
//
// # Long answers
//
// An answer can be called back only as long as nothing of it has left. So up to
// 64 KiB are held back, see [WithHoldBack], until the handler returns, flushes, or
// writes more. From then on each write asks for the lease before it leaves, and
// fails with [leasehold.ErrIndeterminate] when it is gone; the connection is then cut, so
// that no caller takes a part for the whole.
//
// The context of a request ends when its lease does, about a second later at the
// most, with a cause of kind [leasehold.ErrIndeterminate]; and so does a connection that
// the handler has hijacked, a WebSocket for instance. What is written to it asks for
// the lease each time, as above. Its caller connects again, and reaches the next owner.
// A suspended lease has not ended: contexts and idle connections last through an outage of
// the managers, and what is written meanwhile fails.
//
// Middleware panics if the source is the zero Source. It costs two checks, a
// timer, and a copy of the answer.
func Middleware(o owner.Checker, key Source, options ...MiddlewareOption) func(http.Handler) http.Handler {
	if !key.valid() {
		panic(leasehold.Errorf("middleware", leasehold.ErrInvalid, "", "say where the key is, with Header for instance"))
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
	if said := r.Header.Get(HeaderKey); said != "" && said != key.String() {
		w.Header().Set(HeaderRefused, RefusedOtherKey)
		tellKey(w.Header(), name, key)
		explain(w, http.StatusBadRequest, leasehold.ErrInvalid,
			"the request was routed by key "+clip(said)+" and is about "+key.String()+", which is "+g.source.String()+
				" here: give gateways and servers the same source of keys")
		return
	}
	_ = g.owner.Await(r.Context(), key) // Check says the same, and has the lease
	lease, ok := g.owner.Check(key)
	if !ok {
		tellKey(w.Header(), name, key)
		why := errNotOwner
		if g.owner.Suspended(key) {
			why = errSuspended
		}
		WriteError(w, why)
		return
	}
	ctx, end := context.WithCancelCause(context.WithValue(r.Context(), leaseKey{}, lease))
	defer end(nil)
	t := newTenure(g.owner, lease, end)
	defer t.release()
	h := newHeldBack(w, t, g.holdBack)
	next.ServeHTTP(h, r.WithContext(ctx))
	h.finish()
}
