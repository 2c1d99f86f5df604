package flease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
)

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("r%d", i)
	}
	return names
}

// TryAcquireAll returns a result for each resource, in order, even if they exceed the window.
func TestTryAcquireAll(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		names := numbered(3*window + 1)
		taken, err := s.nodes[2].AcquireAll(t.Context(), []string{names[7], names[window], names[3*window]})
		if err != nil {
			t.Fatal(err)
		}
		names[8] = "" // invalid
		wrong, others := 0, 0
		for i, r := range s.nodes[1].TryAcquireAll(t.Context(), names) {
			var held *HeldError
			switch {
			case errors.As(r.Err, &held):
				if held.Resource != names[i] || held.Holder != 2 || held.Until.IsZero() {
					t.Errorf("%s: %+v", names[i], held)
				}
				others++
			case r.Err != nil:
				if i != 8 || leasehold.KindOf(r.Err) != leasehold.ErrInvalid {
					t.Errorf("%s: %v", names[i], r.Err)
				}
				wrong++
			case !r.Lease.Valid() || r.Lease.Resource() != names[i]:
				t.Errorf("%s: a lease of %s, valid %t", names[i], r.Lease.Resource(), r.Lease.Valid())
			}
		}
		if others != len(taken) || wrong != 1 {
			t.Errorf("%d held by others and %d invalid, want %d and 1", others, wrong, len(taken))
		}
		if got := s.nodes[1].TryAcquireAll(t.Context(), nil); len(got) != 0 {
			t.Errorf("results of an empty batch: %v", got)
		}
	})
}

// If one resource of AcquireAll fails, none is held.
func TestAcquireAllOrNone(t *testing.T) {
	for name, test := range map[string]struct {
		names []string
		want  leasehold.Kind
	}{
		"an invalid name":        {[]string{"a", "b", "", "c"}, leasehold.ErrInvalid},
		"a duplicate name":       {[]string{"a", "b", "a"}, leasehold.ErrInvalid},
		"held by another member": {[]string{"a", "theirs", "c"}, leasehold.ErrUnavailable},
		"held by this member":    {[]string{"a", "ours"}, leasehold.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T) {
				s := newSystem(t, 3, nil)
				s.acquire(2, "theirs")
				s.acquire(1, "ours")
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if got, err := s.nodes[1].AcquireAll(ctx, test.names); leasehold.KindOf(err) != test.want || got != nil {
					t.Fatalf("got %v, %v", got, err)
				}
				time.Sleep(time.Second)
				if got := s.nodes[1].Leases(); len(got) != 1 || got[0].Resource() != "ours" {
					t.Errorf("still has %d leases", len(got))
				}
				for _, r := range s.nodes[3].TryAcquireAll(t.Context(), []string{"a", "b", "c"}) {
					if r.Err != nil {
						t.Errorf("not free: %v", r.Err)
					}
				}
			})
		})
	}
}

func TestReleaseAll(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		names := numbered(2*window + 5)
		leases, err := s.nodes[1].AcquireAll(t.Context(), names)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.nodes[2].ReleaseAll(t.Context(), leases); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("released by another node: %v", err)
		}
		if err := s.nodes[1].ReleaseAll(t.Context(), leases); err != nil {
			t.Fatal(err)
		}
		for _, l := range leases {
			if l.Valid() || !isOver(l) {
				t.Fatalf("%s is valid after it was released", l.Resource())
			}
		}
		if _, err := s.nodes[3].AcquireAll(t.Context(), names); err != nil {
			t.Error(err)
		}
		if err := s.nodes[1].ReleaseAll(t.Context(), nil); err != nil {
			t.Errorf("release of an empty batch: %v", err)
		}
	})
}

// A lease ends at its release even if no member receives the release; the call then returns an error.
func TestReleaseWithoutAcks(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		leases, err := s.nodes[1].AcquireAll(t.Context(), []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		s.network.Cut(1, 2)
		s.network.Cut(1, 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := leases[0].Release(ctx); !errors.Is(err, context.DeadlineExceeded) || leases[0].Valid() {
			t.Errorf("%v, valid %t", err, leases[0].Valid())
		}
		if err := leases[1].Release(t.Context()); !errors.Is(err, leasehold.ErrUnavailable) || leases[1].Valid() {
			t.Errorf("%v, valid %t", err, leases[1].Valid())
		}
		s.acquire(2, "b") // after it has expired
	})
}

// Batches do not wait for each other.
func TestConcurrentBatches(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		theirs := s.acquire(2, "r0")
		all := make(chan error, 1)
		go func() {
			_, err := s.nodes[1].AcquireAll(t.Context(), numbered(10))
			all <- err
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		s.acquire(1, "mine")
		if _, err := s.nodes[1].TryAcquire(t.Context(), "r0"); leasehold.KindOf(err) != leasehold.ErrNotOwner {
			t.Errorf("try while another call waits: %v", err)
		}
		if err := theirs.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-all; err != nil {
			t.Error(err)
		}
	})
}

// TestWindow: a batch has fewer resources in flight in a larger group, because it sends more requests for
// each, and it continues after replies.
func TestWindow(t *testing.T) {
	for members, want := range map[int]int{3: window / 2, 5: window / 4} {
		within(t, func(t *testing.T) {
			s := newSystem(t, members, nil)
			for id := range s.nodes {
				s.network.Cut(id, 1)
			}
			var leases []*Lease
			done := make(chan error, 1)
			go func() {
				var err error
				leases, err = s.nodes[1].AcquireAll(t.Context(), numbered(2*window))
				done <- err
			}()
			synctest.Wait()
			if got := s.nodes[1].Status().Waiting; got != want {
				t.Errorf("%d members: %d resources in flight, want %d", members, got, want)
			}
			for id := range s.nodes {
				s.network.Mend(id, 1)
			}
			if err := <-done; err != nil || len(leases) != 2*window {
				t.Errorf("%d members: %d leases, %v", members, len(leases), err)
			}
		})
	}
}
