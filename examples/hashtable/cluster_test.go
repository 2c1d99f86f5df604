package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// start runs a server of the hashtable on a node.
func start(n *leaseholdtest.Node) *table {
	t := &table{entries: map[string]entry{}}
	mover := n.Mover()
	mover.Export, mover.Import = t.export, t.importEntries
	t.owner = n.Join(owner.Config{OnRevoke: t.dropEntries, Mover: mover})
	n.Serve(t)
	return t
}

// A caller sends requests to the owners of keys.
type caller struct {
	lookup *lookup.Lookup
	http   *http.Client
}

func (c *caller) call(t *testing.T, method, path, value string) string {
	t.Helper()
	body, err := c.ask(t.Context(), method, path, value, lookup.WithIdempotent())
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// ask sends a request to the owner of the key.
func (c *caller) ask(ctx context.Context, method, path, value string, options ...lookup.DoOption) (string, error) {
	var body []byte
	err := c.lookup.Do(ctx, leasehold.KeyOf(path), func(ctx context.Context, addr string) error {
		r, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, strings.NewReader(value))
		if err != nil {
			return err
		}
		answer, err := c.http.Do(r)
		if err != nil {
			return leasehold.Errorf("call", leasehold.ErrIndeterminate, addr, "%w", err)
		}
		defer answer.Body.Close() //nolint:errcheck // the body was read
		switch answer.StatusCode {
		case http.StatusMisdirectedRequest:
			return leasehold.ErrNotOwner
		case http.StatusServiceUnavailable:
			return leasehold.ErrIndeterminate
		}
		if body, err = io.ReadAll(answer.Body); err != nil {
			return leasehold.Errorf("call", leasehold.ErrIndeterminate, addr, "%w", err)
		}
		return nil
	}, options...)
	return string(body), err
}

// TestUnderFaults: entries move with their keys when a server is drained, and are lost when
// a server is killed, paused for longer than its lease, or partitioned.
func TestUnderFaults(t *testing.T) {
	for name, hurt := range map[string]struct {
		do   func(*testing.T, *leaseholdtest.Cluster, *leaseholdtest.Node, *table)
		kept bool
	}{
		"kill":  {func(_ *testing.T, _ *leaseholdtest.Cluster, n *leaseholdtest.Node, _ *table) { n.Kill() }, false},
		"pause": {func(_ *testing.T, _ *leaseholdtest.Cluster, n *leaseholdtest.Node, _ *table) { n.Pause() }, false},
		"cut":   {func(_ *testing.T, _ *leaseholdtest.Cluster, n *leaseholdtest.Node, _ *table) { n.Cut() }, false},
		"a short pause": {func(_ *testing.T, c *leaseholdtest.Cluster, n *leaseholdtest.Node, _ *table) {
			n.Pause()
			c.Advance(2 * time.Second)
			n.Resume()
		}, true},
		"close": {func(t *testing.T, _ *leaseholdtest.Cluster, _ *leaseholdtest.Node, s *table) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := s.owner.Close(ctx); err != nil {
				t.Errorf("closing: %v", err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				servers := map[string]*table{"a": start(c.Node("a")), "b": start(c.Node("b"))}
				c.Settle()
				n := c.Node("caller")
				callers := &caller{n.Lookup(), n.Client()}
				callers.call(t, http.MethodPut, "/colour", "green")
				has, _ := c.Owner(leasehold.KeyOf("/colour"))
				hurt.do(t, c, c.Node(has), servers[has])
				c.Settle()
				want := ""
				if hurt.kept {
					want = "green"
				}
				if got := callers.call(t, http.MethodGet, "/colour", ""); got != want {
					t.Errorf("the colour is %q, want %q", got, want)
				}
				callers.call(t, http.MethodPut, "/colour", "blue")
				if got := callers.call(t, http.MethodGet, "/colour", ""); got != "blue" {
					t.Errorf("the colour is %q, want blue", got)
				}
			})
		})
	}
}
