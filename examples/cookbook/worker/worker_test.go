package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/internal/recipetest"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// A workshop records the effects of workers. It accepts them as a database with a fence does.
type workshop struct {
	mu    sync.Mutex
	fence map[string]leasehold.Generation
	done  map[string]map[string]int // name, node: effects
}

func (s *workshop) names() (names []string) {
	for i := range 20 {
		names = append(names, fmt.Sprint("device-", i))
	}
	return names
}

func (s *workshop) join(ctx context.Context, as owner.Config) (*Pool, error) {
	as.Mover = nil // there is no state
	return Join(ctx, as, s.names(), func(ctx context.Context, name string, g leasehold.Generation, held func() bool) {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for held() {
			s.effect(name, string(as.Name), g)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

func (s *workshop) effect(name, node string, g leasehold.Generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g < s.fence[name] {
		return
	}
	s.fence[name] = g
	if s.done[name] == nil {
		s.done[name] = make(map[string]int)
	}
	s.done[name][node]++
}

// wantOneEach checks that in ten seconds each name is worked on by its owner only. It returns the owners.
func (s *workshop) wantOneEach(t *testing.T, p *recipetest.Pair) map[string]bool {
	t.Helper()
	p.Settle()
	s.mu.Lock()
	s.done = make(map[string]map[string]int)
	s.mu.Unlock()
	p.Advance(10 * time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	owners := make(map[string]bool)
	for _, name := range s.names() {
		node := p.OwnerOf(name)
		owners[node] = true
		if nodes := s.done[name]; len(nodes) != 1 || nodes[node] < 9 {
			t.Errorf("%s: effects %v, want 10 of %s", name, nodes, node)
		}
	}
	return owners
}

// TestWorkers: each name has one worker, on its owner, also after a restart and a crash.
func TestWorkers(t *testing.T) {
	s := &workshop{fence: make(map[string]leasehold.Generation), done: make(map[string]map[string]int)}
	recipetest.Run(t, s.join, func(t *testing.T, p *recipetest.Pair) {
		if owners := s.wantOneEach(t, p); len(owners) != 2 {
			t.Errorf("owners %v, want 2", owners)
		}
		p.Want(http.StatusOK, "leases: ", http.MethodGet, "/pool/x", "")
		p.Restart("device-0")
		s.wantOneEach(t, p)
		p.Crash("device-0")
		if owners := s.wantOneEach(t, p); len(owners) != 1 {
			t.Errorf("owners %v, want 1", owners)
		}
	})
}

// TestCloseWithDeadline: Close does not wait longer than its context for a worker that does not stop.
func TestCloseWithDeadline(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, cluster *leaseholdtest.Cluster) {
		runs, end := make(chan struct{}), make(chan struct{})
		p, err := Join(t.Context(), cluster.Node("a").OwnerConfig(), []string{"device"}, func(context.Context, string, leasehold.Generation, func() bool) {
			close(runs)
			<-end
		})
		if err != nil {
			t.Fatal(err)
		}
		<-runs
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the worker still runs: %v", err)
		}
		close(end)
	})
}
