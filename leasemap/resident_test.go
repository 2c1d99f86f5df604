package leasemap_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// A house has the residents of all servers of a test: how many run for each name. Each saves the number of its starts when
// its context ends, and returns.
type house struct {
	mu      sync.Mutex
	running map[string]int
	twice   []string
}

func (h *house) count(name string, by int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running[name] += by; h.running[name] > 1 {
		h.twice = append(h.twice, name)
	}
}

// want checks how many names have a resident, after all goroutines have come to rest.
func (h *house) want(t *testing.T, names int, when string) {
	t.Helper()
	time.Sleep(2 * time.Second)
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.running, func(_ string, n int) bool { return n == 0 })
	if len(h.running) != names || len(h.twice) > 0 {
		t.Errorf("%s: residents of %v, twice %v, want %d names", when, h.running, h.twice, names)
	}
}

func (h *house) join(t *testing.T, n *leaseholdtest.Node) *leasemap.Map[int] {
	t.Helper()
	var m *leasemap.Map[int]
	joined := make(chan struct{})
	m, err := leasemap.Join(t.Context(), n.MovingConfig(), leasemap.Config[int]{Resident: func(ctx context.Context, name string) {
		<-joined
		h.count(name, 1)
		defer h.count(name, -1)
		<-ctx.Done()
		time.Sleep(time.Second)                                                            // of the fake clock: a move must wait for it
		_, _ = m.Do(context.WithoutCancel(ctx), name, func(e *leasemap.Entry[int]) error { // fails unless it moves
			if !e.Version.Exists() {
				e.Keep() // it was deleted
			}
			e.Value++
			return nil
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	close(joined)
	n.Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
	return m
}

func ints(t *testing.T, names int, set func(ctx context.Context, name string) error) {
	t.Helper()
	for i := range names {
		if err := set(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
}

// A resident starts at the first operation and with an arrival, and ends with the value. Before a move it saves its state.
func TestResidentsMove(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		h := &house{running: make(map[string]int)}
		x := h.join(t, c.Node("x"))
		c.Settle()
		const names = 16
		ints(t, names, func(ctx context.Context, name string) error { _, err := x.Set(ctx, name, 0); return err })
		h.want(t, names, "after the first operations")
		_, err := x.Set(t.Context(), "gone", 0)
		if err == nil {
			err = x.Delete(t.Context(), "gone")
		}
		if err != nil {
			t.Fatal(err)
		}
		h.want(t, names, "after a deletion")
		y := h.join(t, c.Node("y"))
		c.Settle()
		c.Advance(time.Minute)
		if x.Len() == 0 || x.Len()+y.Len() != names {
			t.Errorf("x has %d names and y %d", x.Len(), y.Len())
		}
		h.want(t, names, "after moves")
		moved := y.Len()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := x.Close(ctx); err != nil {
			t.Fatal(err)
		}
		h.want(t, names, "after x has closed")
		saved := 0
		ints(t, names, func(_ context.Context, name string) error {
			moves, _, err := y.Get(name)
			if moves > 0 {
				saved++
			}
			return err
		})
		if saved != names {
			t.Errorf("%d residents have saved their state before a move, want %d; %d moved first", saved, names, moved)
		}
		ints(t, names, func(ctx context.Context, name string) error { return y.Delete(ctx, name) })
		h.want(t, 0, "without values")
	})
}

// While the leases are suspended no resident runs. They run again afterwards.
func TestResidentsInOutage(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		h := &house{running: make(map[string]int)}
		n := c.Node("x")
		x := h.join(t, n)
		c.Settle()
		ints(t, 4, func(ctx context.Context, name string) error { _, err := x.Set(ctx, name, 0); return err })
		h.want(t, 4, "at first")
		n.Cut()
		c.Advance(30 * time.Second)
		if !x.Owner().Suspended(leasehold.KeyOf("0")) {
			t.Fatal("the lease is not suspended")
		}
		h.want(t, 0, "in an outage")
		n.Heal()
		c.Settle()
		h.want(t, 4, "after the outage")
	})
}
