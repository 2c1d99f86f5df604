//go:build unix

package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// journal returns a logger whose last lines are printed if the test fails.
func journal(t *testing.T, name string) *slog.Logger {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = f.Close() // it is read below, or not at all
		if t.Failed() {
			t.Log(proc.Tail(f.Name()))
		}
	})
	return slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// addrOf is where callers would reach an owner of a test, if any did.
func addrOf(name string) string { return name + ".test:80" }

// join makes this process an owner until the test ends.
func (g *group) join(t *testing.T, ns, name string) *owner.Owner {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o, err := owner.Join(ctx, owner.Config{
		Namespace: leasehold.Namespace(ns), Managers: g.addrs(), Addr: addrOf(name), Name: leasehold.OwnerID(name),
		Logger: journal(t, name),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = o.Close(ctx) // the managers may be gone
	})
	return o
}

// A caller is a lookup and what it reported.
type caller struct {
	*lookup.Lookup
	mu     sync.Mutex
	losses []leasehold.Loss
}

// open follows a table until the test ends. It finds out soon if it hears
// nothing any more.
func (g *group) open(t *testing.T, ns string, stale time.Duration) *caller {
	t.Helper()
	c := &caller{}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	c.Lookup, err = lookup.Open(ctx, lookup.Config{
		Namespace: leasehold.Namespace(ns), Managers: g.addrs(), Poll: min(500*time.Millisecond, stale/3), Stale: stale,
		OnLoss: c.lost, Logger: journal(t, "lookup"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) }) // it never fails
	return c
}

func (c *caller) lost(l []leasehold.Loss) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.losses = append(c.losses, l...)
}

// told returns all losses so far.
func (c *caller) told() []leasehold.Loss {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.losses)
}

// probes are keys all over the key space.
func probes() []leasehold.Key {
	const n = 64
	out := make([]leasehold.Key, n)
	for i := range out {
		out[i] = leasehold.Key(i) << (64 - 6)
	}
	return out
}

// places returns where a lookup finds the probes, "" for nowhere.
func (c *caller) places() []string {
	var out []string
	for _, k := range probes() {
		addr, _ := c.Find(k)
		out = append(out, addr)
	}
	return out
}

// younger reports whether the table is known to have been complete as short a
// time ago.
func (c *caller) younger(than time.Duration) error {
	if age := c.Age(); age > than {
		return fmt.Errorf("its table may be %v old", age)
	}
	return nil
}
