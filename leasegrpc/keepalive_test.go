package leasegrpc_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// A quiet stream survives the keepalive of its client, at the shortest interval of grpc-go. Without
// a server that replies, keepalive ends it.
func TestKeepaliveOfQuietStreams(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("a")
		serve(t, n)
		c.Settle()
		node := c.Node("caller")
		options, err := leasegrpc.DialOptions(node.Lookup(), leasegrpc.Config{Methods: byField})
		if err != nil {
			t.Fatal(err)
		}
		board := &switchboard{node: node, dials: map[string]int{}}
		options = append(append(options, node.DialOptions()...), grpc.WithContextDialer(board.dial),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true}))
		conn, err := grpc.NewClient("leasehold:///test", options...)
		if err != nil {
			t.Fatal(err)
		}
		node.Cleanup(func(context.Context) { _ = conn.Close() })
		caller := counterClient{conn}
		mustAdd(t, caller, "alice", 1)
		c.Advance(10 * time.Minute) // without a stream
		mustAdd(t, caller, "alice", 2)
		if n := board.dialed()[n.Addr()]; n != 1 {
			t.Errorf("%d connections: the server has closed idle ones", n)
		}
		w, err := caller.watch(patient(t), "alice")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := w.next(); n != 2 || err != nil {
			t.Fatalf("watched %d, %v", n, err)
		}
		changed := make(chan error, 1)
		go func() {
			_, err := w.next()
			changed <- err
		}()
		c.Advance(9 * time.Minute)
		select {
		case err := <-changed:
			t.Fatalf("the quiet stream ended: %v", err)
		default:
		}
		n.Pause()
		paused := time.Now()
		if err := <-changed; leasehold.KindOf(err) != leasehold.ErrIndeterminate || time.Since(paused) > 16*time.Second {
			t.Errorf("%v after the pause: %v", time.Since(paused), err)
		}
		n.Resume()
		c.Settle()
	})
}
