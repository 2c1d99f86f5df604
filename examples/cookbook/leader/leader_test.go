package leader

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/internal/recipetest"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// A journal records on which node, and in which term, the task ran.
type journal struct {
	mu    sync.Mutex
	nodes []string
	terms []leasehold.Generation
}

func (j *journal) join(ctx context.Context, as owner.Config) (*Candidate, error) {
	as.Mover = nil // there is no state
	return Join(ctx, as, "nightly", time.Second, func(_ context.Context, term leasehold.Generation) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.nodes, j.terms = append(j.nodes, string(as.Name)), append(j.terms, term)
	})
}

// TestElection: one server runs the task. After a crash, or after it resigns, another one does, in a higher term.
func TestElection(t *testing.T) {
	var j journal
	recipetest.Run(t, j.join, func(t *testing.T, p *recipetest.Pair) {
		for _, end := range []func(string){p.Restart, p.Crash} {
			p.Settle()
			j.mu.Lock()
			j.nodes = nil
			j.mu.Unlock()
			p.Advance(10 * time.Second)
			j.mu.Lock()
			if nodes := slices.Compact(slices.Clone(j.nodes)); len(nodes) != 1 || len(j.nodes) < 9 {
				t.Errorf("the task ran on %q, want 10 times on one", j.nodes)
			}
			j.mu.Unlock()
			p.Want(http.StatusOK, "leader: true", http.MethodGet, "/leader/nightly", "")
			end("nightly")
		}
		p.Advance(10 * time.Second)
		j.mu.Lock()
		defer j.mu.Unlock()
		if terms := slices.Compact(slices.Clone(j.terms)); !slices.IsSorted(j.terms) || len(terms) < 3 {
			t.Errorf("terms %d, want at least 3 that increase", terms)
		}
	})
}

// TestCloseWithDeadline: Close does not wait longer than its context for a task that does not end.
func TestCloseWithDeadline(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, cluster *leaseholdtest.Cluster) {
		runs, end := make(chan struct{}, 1), make(chan struct{})
		c, err := Join(t.Context(), cluster.Node("a").OwnerConfig(), "nightly", time.Second, func(context.Context, leasehold.Generation) {
			runs <- struct{}{}
			<-end
		})
		if err != nil {
			t.Fatal(err)
		}
		<-runs
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the task still runs: %v", err)
		}
		close(end)
	})
}
