package flease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A context ends with the lease, with the reason as its cause.
func TestContext(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		l := s.acquire(1, "r")
		ctx, cancel := l.Context(t.Context())
		other, cancelOther := l.Context(t.Context())
		parent, endParent := context.WithCancelCause(t.Context())
		child, cancelChild := l.Context(parent)
		defer cancelChild()
		time.Sleep(3 * lease)
		if ctx.Err() != nil || other.Err() != nil || child.Err() != nil {
			t.Fatalf("the context of a valid lease has ended: %v", context.Cause(ctx))
		}
		cancelOther()
		mine := errors.New("mine")
		endParent(mine)
		if other.Err() == nil || !errors.Is(context.Cause(child), mine) || ctx.Err() != nil {
			t.Errorf("cancelled: %v; of the parent: %v; neither: %v", other.Err(), context.Cause(child), ctx.Err())
		}
		s.network.Cut(1, 2)
		s.network.Cut(1, 3)
		await(t, ctx)
		if l.Valid() || leasehold.KindOf(context.Cause(ctx)) != leasehold.ErrNotOwner || context.Cause(ctx).Error() != l.Err().Error() {
			t.Errorf("valid: %t, %v, %v", l.Valid(), context.Cause(ctx), l.Err())
		}
		cancel()
		late, cancelLate := l.Context(t.Context())
		defer cancelLate()
		if late.Err() == nil || leasehold.KindOf(context.Cause(late)) != leasehold.ErrNotOwner {
			t.Errorf("context of an ended lease: %v", context.Cause(late))
		}

		s.network.Mend(1, 2)
		s.network.Mend(1, 3)
		l = s.acquire(1, "r")
		ctx, cancel = l.Context(t.Context())
		defer cancel()
		_ = l.Release(t.Context())
		await(t, ctx)
		if leasehold.KindOf(context.Cause(ctx)) != leasehold.ErrClosed {
			t.Errorf("context of a released lease: %v", context.Cause(ctx))
		}
	})
}

// A try for a resource that another call of this process holds or waits for fails, with the
// difference in the error.
func TestTryHeldBySameProcess(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		try := func() (held *HeldError) {
			t.Helper()
			_, err := s.nodes[1].TryAcquire(t.Context(), "r")
			if !errors.As(err, &held) {
				t.Fatal(err)
			}
			return held
		}
		theirs := s.acquire(2, "r")
		got := make(chan *Lease, 1)
		go func() {
			l, _ := s.nodes[1].Acquire(t.Context(), "r")
			got <- l
		}()
		synctest.Wait()
		if h := try(); h.Holder != 1 || !h.Waiting || h.Fence != 0 || !h.Until.IsZero() {
			t.Errorf("another call waits: %+v", h)
		}
		_ = theirs.Release(t.Context())
		l := <-got
		if h := try(); h.Holder != 1 || h.Waiting || h.Fence != l.Fence() || !h.Until.Equal(l.Until()) {
			t.Errorf("another call holds it: %+v", h)
		}
	})
}

// await waits for the end of a context, for longer than any lease lasts.
func await(t *testing.T, ctx context.Context) { //nolint:revive // it is the test that waits
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Fatal("the context does not end")
	}
}
