package flease

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"
)

// onLoopback starts three members on the loopback that take part soon.
func onLoopback(tb testing.TB, transport Transport) []*Node {
	tb.Helper()
	var members []Member
	for i := range 3 {
		members = append(members, Member{ID: ID(i + 1), Addr: freeAddr(tb)})
	}
	var nodes []*Node
	for _, m := range members {
		n, err := Start(Config{Self: m.ID, Members: members, Transport: transport, Lease: 2 * time.Second, Epsilon: 10 * time.Millisecond})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = n.Close(ctx) // the last ones find no majority
		})
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		if err := n.Ready(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
	return nodes
}

// freeAddr returns an address on the loopback whose port is free, for datagrams
// and for connections.
func freeAddr(tb testing.TB) string {
	tb.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		p, err := net.ListenPacket("udp", l.Addr().String())
		_ = l.Close()
		if err == nil {
			_ = p.Close()
			return l.Addr().String()
		}
	}
	tb.Fatal("no port is free")
	return ""
}

func BenchmarkValid(b *testing.B) {
	l := &Lease{node: &Node{time: newSystemTime(nil)}}
	now, _ := l.node.time.read()
	now.Mono, now.Wall = now.Mono.Add(time.Hour), now.Wall.Add(time.Hour)
	l.until.Store(&now)
	for b.Loop() {
		if !l.Valid() {
			b.Fatal("not valid")
		}
	}
}

// BenchmarkNow is the baseline of BenchmarkValid.
func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		_ = time.Now()
	}
}

// BenchmarkAcquireAll acquires resources that are new, in batches, and releases
// them, on three nodes in one process.
func BenchmarkAcquireAll(b *testing.B) {
	const size = 10000
	nodes := onLoopback(b, UDP{})
	names := make([]string, size)
	round := 0
	for b.Loop() {
		b.StopTimer()
		round++
		for i := range names {
			names[i] = fmt.Sprintf("batch-%d/resource-%d", round, i)
		}
		b.StartTimer()
		leases, err := nodes[0].AcquireAll(b.Context(), names)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := nodes[0].ReleaseAll(b.Context(), leases); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N)*size/b.Elapsed().Seconds(), "leases/s")
	for _, n := range nodes {
		b.Logf("%+v", n.Status().Traffic)
	}
}

func BenchmarkAcquireOne(b *testing.B) {
	nodes := onLoopback(b, UDP{})
	for b.Loop() {
		l, err := nodes[0].Acquire(b.Context(), "r")
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
