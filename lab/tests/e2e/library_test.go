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

// testLogger returns a logger whose last lines are printed if the test fails.
func testLogger(t *testing.T, name string) *slog.Logger {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = f.Close() // the file is read below, or not at all
		if t.Failed() {
			t.Log(proc.Tail(f.Name()))
		}
	})
	return slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// addrOf returns the address of an owner. No test connects to it.
func addrOf(name string) string { return name + ".test:80" }

// join joins an owner in this process, until the test ends.
func (g *group) join(t *testing.T, ns, name string) *owner.Owner {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	o, err := owner.Join(ctx, owner.Config{
		Namespace: leasehold.Namespace(ns), Managers: g.addrs(), Addr: addrOf(name), Name: leasehold.OwnerID(name),
		Logger: testLogger(t, name),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = o.Close(ctx) // the managers may have ended
	})
	return o
}

// A caller is a lookup and its reported losses.
type caller struct {
	*lookup.Lookup
	mu     sync.Mutex
	losses []leasehold.Loss
}

// open opens a lookup until the test ends. It polls often, so that lost contact is
// detected soon.
func (g *group) open(t *testing.T, ns string, stale time.Duration) *caller {
	t.Helper()
	c := &caller{}
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	var err error
	c.Lookup, err = lookup.Open(ctx, lookup.Config{
		Namespace: leasehold.Namespace(ns), Managers: g.addrs(), Poll: min(500*time.Millisecond, stale/3), Stale: stale,
		OnLoss: c.lost, Logger: testLogger(t, "lookup"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) }) // never fails
	return c
}

func (c *caller) lost(l []leasehold.Loss) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.losses = append(c.losses, l...)
}

// reportedLosses returns all losses so far.
func (c *caller) reportedLosses() []leasehold.Loss {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.losses)
}

// probes returns 64 keys at equal distances.
func probes() []leasehold.Key {
	const n = 64
	out := make([]leasehold.Key, n)
	for i := range out {
		out[i] = leasehold.Key(i) << (64 - 6)
	}
	return out
}

// places returns the addresses of the probes' owners, "" for none.
func (c *caller) places() []string {
	var out []string
	for _, k := range probes() {
		addr, _ := c.Find(k)
		out = append(out, addr)
	}
	return out
}

// maxAge returns an error if the table was last confirmed longer ago.
func (c *caller) maxAge(than time.Duration) error {
	if age := c.Age(); age > than {
		return fmt.Errorf("the table was confirmed %v ago", age)
	}
	return nil
}
