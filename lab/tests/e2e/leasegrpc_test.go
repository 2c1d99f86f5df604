//go:build unix

package e2e

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
)

// TestGRPCRouting: calls of a gRPC client go to the servers that own their keys, while
// one is killed, comes back, and is restarted. What moves is there afterwards, and
// what died with a server is reported lost.
func TestGRPCRouting(t *testing.T) {
	t.Parallel()
	const ns = "grpc"
	g := startLone(t)
	g.createNamespace(t, ns, lostLease)
	addrs := []string{freeAddr(t), freeAddr(t)}
	victim, other := g.serveGRPCProcess(t, ns, addrs[0]), g.serveGRPCProcess(t, ns, addrs[1])
	calls := g.open(t, ns, patience)
	eventually(t, "both have keys", func() error {
		if have := calls.Addrs(); len(have) != len(addrs) {
			return fmt.Errorf("servers %v", have)
		}
		return nil
	})
	c := g.dialCounters(t, ns)
	c.addAll(t)
	before := calls.LSN()

	victim.kill()
	lost := c.addAll(t)
	if len(lost) == 0 || len(lost) == len(c.counts) {
		t.Errorf("%d of %d counters are lost: want those of one server", len(lost), len(c.counts))
	}
	for _, name := range lost {
		eventually(t, name+" is reported lost", func() error {
			if !calls.lostSince(before, name) {
				return fmt.Errorf("these losses are reported: %v", calls.told())
			}
			return nil
		})
	}

	victim = g.serveGRPCProcess(t, ns, addrs[0]) // at the same address
	eventually(t, "it has keys again", func() error {
		if have := calls.Addrs(); len(have) != len(addrs) {
			return fmt.Errorf("servers %v", have)
		}
		return nil
	})
	before = calls.LSN()
	lost = c.addAll(t)
	other.signal(t, syscall.SIGTERM)
	for other.Alive() {
		lost = append(lost, c.addAll(t)...)
	}
	lost = append(lost, c.addAll(t)...)
	if status := other.exit(t); status != 0 || !victim.Alive() {
		t.Errorf("it ended with status %d; the other one is alive: %t", status, victim.Alive())
	}
	if len(lost) > 0 {
		t.Errorf("what was moved is lost: %v", lost)
	}
	for _, l := range calls.told() {
		if l.LSN > before {
			t.Errorf("a restart lost %v", l)
		}
	}
}

// lostSince reports whether the counter of a name was reported lost after a change.
func (c *caller) lostSince(lsn leasehold.LSN, name string) bool {
	for _, l := range c.told() {
		if l.LSN > lsn && l.Range.Contains(leasehold.KeyOf(name)) {
			return true
		}
	}
	return false
}

// counterCalls adds to counters, and knows what they are.
type counterCalls struct {
	conn   *grpc.ClientConn
	counts map[string]int64
}

// dialCounters connects to whoever owns counters.
func (g *group) dialCounters(t *testing.T, ns string) *counterCalls {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := leasegrpc.NewClient(ctx, "leasehold://"+strings.Join(g.addrs(), ",")+"/"+ns, leasegrpc.Config{},
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &counterCalls{conn, map[string]int64{}}
	for i := range 40 {
		c.counts[fmt.Sprint("user-", i)] = 0
	}
	return c
}

// addAll adds one to every counter, and returns those that have begun anew.
func (c *counterCalls) addAll(t *testing.T) (lost []string) {
	t.Helper()
	for name, had := range c.counts {
		n, most := c.add(t, name, had+1)
		switch c.counts[name] = n; {
		case n < had+1 && n <= most-had:
			lost = append(lost, name)
		case n < had+1 || n > most:
			t.Errorf("%s was %d and became %d, want %d to %d", name, had, n, had+1, most)
		}
	}
	return lost
}

// add adds one to a counter, and returns what it should be at most. A call that meets
// a server that goes away may be carried out although it fails.
func (c *counterCalls) add(t *testing.T, name string, want int64) (n, most int64) {
	t.Helper()
	for most = want; ; most++ {
		var n wrapperspb.Int64Value
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := c.conn.Invoke(ctx, addMethod, wrapperspb.String(name), &n, leasegrpc.WithKey(name))
		cancel()
		if err == nil {
			return n.GetValue(), most
		}
		if status.Code(err) != codes.Unavailable || most > want+2 {
			t.Fatalf("%s: %v", name, err)
		}
		t.Logf("%s may have been added to: %v", name, err)
	}
}
