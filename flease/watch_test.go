package flease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// seeing collects the results of a watch until the test ends.
func (s *system) seeing(id ID, resource string) (last func() Holder, all func() []Holder) {
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var seen []Holder
	done := make(chan struct{})
	go func() {
		defer close(done)
		for h, err := range s.nodes[id].Watch(ctx, resource) {
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					s.t.Error(err)
				}
				break
			}
			mu.Lock()
			seen = append(seen, h)
			mu.Unlock()
		}
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
	all = func() []Holder {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
	return func() Holder { h := all(); return h[len(h)-1] }, all
}

// When all members acquire a resource at once, one holds it, and no other ever sees itself as the
// holder.
func TestWatchNeverNamesSelfWithoutALease(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		const rounds = 10
		for round := range rounds {
			name := string(rune('a' + round))
			ctx, cancel := context.WithCancel(t.Context())
			var lasts [3]func() Holder
			var alls [3]func() []Holder
			for id := ID(1); id <= 3; id++ {
				lasts[id-1], alls[id-1] = s.seeing(id, name)
			}
			type result struct {
				id ID
				l  *Lease
			}
			results := make(chan result, 3)
			for id := ID(1); id <= 3; id++ {
				go func() {
					l, _ := s.nodes[id].Acquire(ctx, name) // two are cancelled
					results <- result{id, l}
				}()
			}
			first := <-results
			// A member that received a proposal without a majority sees it until it expires, a lease later.
			time.Sleep(lease + lease/4)
			for id := ID(1); id <= 3; id++ {
				if h := lasts[id-1](); h.ID != first.id || h.Fence != first.l.Fence() {
					t.Errorf("round %d: after a lease member %d sees %+v, but the holder is %d", round, id, h, first.id)
				}
				for _, h := range alls[id-1]() {
					if h.ID == id && id != first.id {
						t.Errorf("round %d: member %d has seen itself as the holder", round, id)
					}
				}
			}
			cancel()
			<-results
			<-results
			if err := first.l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A member that has just started is unsure; after a lease without messages there is no holder.
func TestWatchDistinguishesFreeFromUnknown(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		held := s.acquire(1, "held")
		s.kill(3)
		s.start(3)
		_, freely := s.seeing(3, "free")
		_, heldly := s.seeing(3, "held")
		if h := freely()[0]; !h.Unsure || h.ID != 0 {
			t.Errorf("after a start: %+v", h)
		}
		time.Sleep(silence + lease + time.Second)
		if all := freely(); len(all) != 2 || all[1] != (Holder{}) {
			t.Errorf("a free resource: %+v", all)
		}
		if all := heldly(); len(all) != 2 || !all[0].Unsure || all[1].ID != 1 || all[1].Fence != held.Fence() {
			t.Errorf("held by member 1: %+v", all)
		}
	})
}

// The error of a cancelled Acquire, and the status meanwhile, have the reason for the wait.
func TestReasonOfWaitingCall(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		s.acquire(1, "r")
		why := func(id ID, resource, want string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			time.AfterFunc(4*time.Second, func() {
				if st := s.nodes[id].Resource(resource); st.Waiting != 1 || !strings.Contains(st.Why, want) {
					t.Errorf("status of a waiting call: %+v", st)
				}
			})
			if _, err := s.nodes[id].Acquire(ctx, resource); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %q", err, want)
			}
		}
		why(2, "r", "member 1 probably holds it")
		why(1, "r", "another call of this process holds it")
		s.kill(2)
		s.kill(3)
		why(1, "s", "too few members of its group reply: 1 so far, including this one, and 2 are required")
		if st := s.nodes[1].Resource("unused"); st.Waiting != 0 || st.Why != "" || !st.Holder.Unsure {
			t.Errorf("unused resource: %+v", st)
		}
		_ = s.nodes[1].Close(t.Context())
		if s.nodes[1].Status().Ready {
			t.Error("a closed node is ready")
		}
	})
}
