package leasegrpc_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A switchboard counts the connections of a node.
type switchboard struct {
	node  *leaseholdtest.Node
	mu    sync.Mutex
	dials map[string]int
}

func (s *switchboard) dial(ctx context.Context, addr string) (net.Conn, error) {
	s.mu.Lock()
	s.dials[addr]++
	s.mu.Unlock()
	return s.node.Dial(ctx, addr)
}

// dialed returns the number of connections by address.
func (s *switchboard) dialed() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for addr, n := range s.dials {
		out[addr] = n
	}
	return out
}

// dialCounting returns a routed connection and the counter of its connections.
func dialCounting(t *testing.T, n *leaseholdtest.Node, cfg leasegrpc.Config) (counterClient, *switchboard, *lookup.Lookup) {
	t.Helper()
	s, l := &switchboard{node: n, dials: map[string]int{}}, n.Lookup()
	options, err := leasegrpc.DialOptions(l, cfg)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("leasehold:///test", append(append(options, n.DialOptions()...), grpc.WithContextDialer(s.dial))...)
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(context.Context) { _ = conn.Close() })
	return counterClient{conn}, s, l
}

// A server is connected to once, with the first call to it.
func TestConnectsWithTheFirstCall(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		for _, name := range serverNames {
			serve(t, c.Node(name))
		}
		c.Settle()
		caller, board, l := dialCounting(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		if len(l.Addrs()) != len(serverNames) {
			t.Fatalf("servers: %v", l.Addrs())
		}
		var calling sync.WaitGroup
		for range 20 {
			calling.Go(func() {
				if _, err := caller.add(patient(t), "alice"); err != nil {
					t.Error(err)
				}
			})
		}
		calling.Wait()
		addr, _ := l.Find(leasehold.KeyOf("alice"))
		if diff := cmp.Diff(map[string]int{addr: 1}, board.dialed()); diff != "" {
			t.Errorf("connections (-want +got):\n%s", diff)
		}
	})
}

// The connection to a server that no longer owns keys is closed after its last call.
func TestOpenCallsOutliveTheirAddress(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		leaving := play(t, c.Node("a"), func(context.Context, string) (int64, error) {
			close(begun)
			<-goOn
			return 0, status.Error(codes.DataLoss, "the answer")
		})
		c.Settle()
		caller, _, l := dialCounting(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		result := make(chan error, 1)
		go func() {
			_, err := caller.add(patient(t), "alice")
			result <- err
		}()
		<-begun
		serve(t, c.Node("b"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := leaving.Close(ctx); err != nil {
			t.Fatal(err)
		}
		for changed := l.Changed(); !slices.Equal(l.Addrs(), []string{"b:8080"}); changed = l.Changed() {
			<-changed
		}
		mustAdd(t, caller, "alice", 1)
		close(goOn)
		// The server's status arrived over the old connection.
		err := <-result
		wantError(t, err, codes.Unavailable, leasehold.ErrIndeterminate)
		wantText(t, err, "the call to server a: it may have been executed")
	})
}

// A server that restarts at its address after a long time is reconnected quickly.
func TestRestartedServerIsReconnectedQuickly(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		mustAdd(t, caller, "alice", 1)
		c.Node("a").Kill()
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			_, err := caller.add(ctx, "alice")
			cancel()
			if err == nil {
				t.Fatal("a call to a stopped server succeeded")
			}
		}
		serve(t, c.Node("a"))
		begun := time.Now()
		mustAdd(t, caller, "alice", 1)
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("the reconnection took %v", took)
		}
	})
}

// An owner that was unreachable for a long time is reconnected quickly.
func TestUnreachableOwnerIsReconnectedQuickly(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		c.Node("a").Cut("caller")
		for range 60 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			_, err := caller.add(ctx, "alice")
			cancel()
			if status.Code(err) != codes.DeadlineExceeded {
				t.Fatal(err)
			}
		}
		c.Node("a").Heal()
		begun := time.Now()
		mustAdd(t, caller, "alice", 1)
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("the reconnection took %v", took)
		}
	})
}

// A call that waits for the connection to an unreachable server follows its key to another.
func TestFollowsTheKeyWhileConnecting(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		serve(t, c.Node("b"))
		c.Settle()
		caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		owns, _ := c.Owner(leasehold.KeyOf("alice"))
		other := map[string]string{"a": "b", "b": "a"}[owns]
		c.Node(owns).Cut("caller") // the managers can reach it
		result := make(chan error, 1)
		go func() {
			_, err := caller.add(patient(t), "alice")
			result <- err
		}()
		synctest.Wait()
		c.Move(rangeOf("alice"), other)
		begun := time.Now()
		if err := <-result; err != nil || time.Since(begun) > time.Second {
			t.Errorf("%v, after %v", err, time.Since(begun))
		}
	})
}

// Calls beyond MaxOutstanding fail immediately; a stream counts while it is open.
func TestMaxOutstanding(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		serveWorking(t, c.Node("a"), func() {
			begun <- struct{}{}
			<-goOn
		})
		c.Settle()
		caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField, MaxOutstanding: 3})
		ctx, hangUp := context.WithCancel(t.Context())
		w, err := caller.watch(ctx, "alice")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.next(); err != nil {
			t.Fatal(err)
		}
		results := make(chan error, 3)
		call := func() {
			_, err := caller.add(patient(t), "alice")
			results <- err
		}
		go call()
		go call()
		<-begun
		<-begun

		for range 5 {
			at := time.Now()
			_, err = caller.add(patient(t), "bob")
			wantError(t, err, codes.ResourceExhausted, leasehold.ErrLimit)
			wantText(t, err, "a:8080", "3 calls")
			if took := time.Since(at); took != 0 {
				t.Errorf("the call failed after %v", took)
			}
		}
		_, err = caller.chat(patient(t), leasegrpc.WithKey("bob"))
		wantError(t, err, codes.ResourceExhausted, leasehold.ErrLimit)
		hangUp()
		synctest.Wait()
		go call() // one slot is free
		<-begun
		close(goOn)
		for range 3 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
}

// Calls continue without managers while owners do not change. The error of a call without an
// owner has the age of the table.
func TestCallsWithoutManagers(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Lease: time.Hour}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		c.KillManager("m1")
		c.Advance(time.Minute)
		mustAdd(t, caller, "alice", 1)
		c.Node("a").Kill()
		c.Advance(time.Second) // until the caller detects the closed connection
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := caller.add(ctx, "bob")
		wantError(t, err, codes.DeadlineExceeded, leasehold.ErrNoOwner)
		wantText(t, err, "a:8080", "nothing was sent", "no manager has replied for")
	})
}

// Calls fail after their lookup is closed.
func TestLookupClosed(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		caller, _, l := dialCounting(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		mustAdd(t, caller, "alice", 1)
		_ = l.Close(context.Background())
		_, err := caller.add(patient(t), "alice")
		wantError(t, err, codes.Canceled, leasehold.ErrClosed)
	})
}

// Several callers of many servers leave no goroutines.
func TestManyServers(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		const servers = 12
		for i := range servers {
			serve(t, c.Node(fmt.Sprint("s", i)))
		}
		c.Settle()
		caller, board, _ := dialCounting(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		for i := range 200 {
			mustAdd(t, caller, fmt.Sprint("user-", i), 1)
		}
		for addr, n := range board.dialed() {
			if n != 1 {
				t.Errorf("%d connections to %s", n, addr)
			}
		}
		if n := len(board.dialed()); n != servers {
			t.Errorf("%d servers were called, want %d", n, servers)
		}
	})
}
