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

// TestGRPCRouting: calls of a gRPC client reach the owners of their keys, while a server is
// killed, restarted and drained. State that moves is kept, and state of a killed server is
// reported as lost.
func TestGRPCRouting(t *testing.T) {
	t.Parallel()
	const ns = "grpc"
	g := startLone(t)
	g.createNamespace(t, ns, lostLease)
	addrs := []string{freeAddr(t), freeAddr(t)}
	victim, other := g.serveGRPCProcess(t, ns, addrs[0]), g.serveGRPCProcess(t, ns, addrs[1])
	calls := g.open(t, ns, eventTimeout)
	eventually(t, "both servers own keys", func() error {
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
		t.Errorf("%d of %d counters were lost, want those of one server", len(lost), len(c.counts))
	}
	for _, name := range lost {
		eventually(t, name+" is reported as lost", func() error {
			if !calls.lostSince(before, name) {
				return fmt.Errorf("reported losses: %v", calls.reportedLosses())
			}
			return nil
		})
	}

	victim = g.serveGRPCProcess(t, ns, addrs[0]) // at the same address
	eventually(t, "the server owns keys again", func() error {
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
		t.Errorf("exit status %d; the other server is alive: %t", status, victim.Alive())
	}
	if len(lost) > 0 {
		t.Errorf("transferred counters were lost: %v", lost)
	}
	for _, l := range calls.reportedLosses() {
		if l.LSN > before {
			t.Errorf("a restart lost %v", l)
		}
	}
}

// lostSince reports whether the key of a name was reported as lost after an LSN.
func (c *caller) lostSince(lsn leasehold.LSN, name string) bool {
	for _, l := range c.reportedLosses() {
		if l.LSN > lsn && l.Range.Contains(leasehold.KeyOf(name)) {
			return true
		}
	}
	return false
}

// counterCalls is a client that increments counters and tracks their values.
type counterCalls struct {
	conn   *grpc.ClientConn
	counts map[string]int64
}

// dialCounters returns a client of the owners of counters.
func (g *group) dialCounters(t *testing.T, ns string) *counterCalls {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
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

// addAll increments every counter, and returns those that restarted from zero.
func (c *counterCalls) addAll(t *testing.T) (lost []string) {
	t.Helper()
	for name, had := range c.counts {
		n, most := c.add(t, name, had+1)
		switch c.counts[name] = n; {
		case n < had+1 && n <= most-had:
			lost = append(lost, name)
		case n < had+1 || n > most:
			t.Errorf("%s was %d and is %d, want %d to %d", name, had, n, had+1, most)
		}
	}
	return lost
}

// add increments a counter, and returns its value and the highest possible value: a call
// that fails because its server ends may have been executed.
func (c *counterCalls) add(t *testing.T, name string, want int64) (n, most int64) {
	t.Helper()
	for most = want; ; most++ {
		var n wrapperspb.Int64Value
		ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
		err := c.conn.Invoke(ctx, addMethod, wrapperspb.String(name), &n, leasegrpc.WithKey(name))
		cancel()
		if err == nil {
			return n.GetValue(), most
		}
		if status.Code(err) != codes.Unavailable || most > want+2 {
			t.Fatalf("%s: %v", name, err)
		}
		t.Logf("%s: outcome unknown: %v", name, err)
	}
}
