package manager_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// benchOwners with 64 virtual nodes each have a table of about 64,000 ranges.
const benchOwners = 1000

func benchHolders() []*table.Holder {
	holders := make([]*table.Holder, benchOwners)
	for i := range holders {
		holders[i] = poolHolder(i)
	}
	return holders
}

// benchPool returns a settled leader of benchOwners.
func benchPool(b *testing.B) *pool {
	b.Helper()
	p := newPool(b, &storage.State{})
	p.joinAll(benchHolders()...)
	p.requireSettled()
	return p
}

// BenchmarkJoin measures the leader's time from an owner's first request until nothing changes any more. With
// immediate commits every released lease is a separate batch; with slow ones the releases of the join are one
// batch.
func BenchmarkJoin(b *testing.B) {
	for _, c := range []struct {
		name string
		hold bool
	}{{"commits=instant", false}, {"commits=slow", true}} {
		b.Run(c.name, func(b *testing.B) { benchmarkJoin(b, c.hold) })
	}
}

func benchmarkJoin(b *testing.B, hold bool) {
	p := benchPool(b)
	var joins int
	var spent, most time.Duration
	var steps, commits, changes int
	for b.Loop() {
		p.hold = hold
		p.spent, p.steps, p.commits, p.changes = 0, 0, 0, 0
		o := p.join(poolHolder(benchOwners + joins))
		p.settle()
		joins++
		spent += p.spent
		most = max(most, p.spent)
		steps, commits, changes = steps+p.steps, commits+p.commits, changes+p.changes

		b.StopTimer()
		p.leave(o)
		p.settle()
		b.StartTimer()
	}
	p.requireSettled()
	b.ReportMetric(spent.Seconds()*1e3/float64(joins), "ms/join")
	b.ReportMetric(most.Seconds()*1e3, "ms/join-max")
	b.ReportMetric(float64(steps)/float64(joins), "steps/join")
	b.ReportMetric(float64(commits)/float64(joins), "commits/join")
	b.ReportMetric(float64(changes)/float64(joins), "changes/join")
	b.ReportMetric(0, "ns/op") // it includes the time of the simulated owners
}

// BenchmarkRenewal measures one request of an owner without changes, and its reply.
func BenchmarkRenewal(b *testing.B) {
	p := benchPool(b)
	var players []*player
	for _, h := range benchHolders() {
		players = append(players, p.players[h.Session])
	}
	requests := make([]manager.Request, len(players))
	for i, o := range players {
		requests[i].LeaseRequest = &protocol.LeaseRequest{
			Namespace: poolNamespace, Holder: o.holder, Seq: o.seq, Term: o.term, Heard: o.lastAck, Applied: o.lastAck, Leases: o.leases,
		}
	}
	every := protocol.DefaultTiming().Renew / benchOwners
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		r := requests[i%len(requests)]
		i++
		r.Seq++
		p.now = p.now.Add(every)
		actions, _ := p.machine.Step(p.now, r)
		if len(actions) != 1 {
			b.Fatalf("a renewal resulted in %v", actions)
		}
		answer := actions[0].(manager.Send).Reply
		r.Heard, r.Applied = answer.Seq, answer.Seq
	}
}

// BenchmarkTakeover measures a new leader's work before its first reply.
func BenchmarkTakeover(b *testing.B) {
	state := &storage.State{Term: 1, Table: benchPool(b).machine.Table()}
	b.ReportAllocs()
	for b.Loop() {
		m, err := manager.New(0, poolConfig(), 2, mono.Never, state)
		if err != nil {
			b.Fatal(err)
		}
		m.Advance(0)
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/takeover")
}

// BenchmarkMemory measures a leader's memory for each range of its table.
func BenchmarkMemory(b *testing.B) {
	stages := []struct {
		name  string
		build func(b *testing.B) *pool
	}{
		{"settled", benchPool},
		{"looked-up", func(b *testing.B) *pool {
			p := benchPool(b)
			p.step(manager.Lookup{LookupRequest: &protocol.LookupRequest{Namespace: poolNamespace, Seq: 1}})
			return p
		}},
		{"taken-over", func(b *testing.B) *pool {
			state := &storage.State{Term: 1, Table: benchPool(b).machine.Table()}
			return newPool(b, state)
		}},
		{"churned", func(b *testing.B) *pool {
			p := benchPool(b)
			for i, h := range benchHolders()[:100] {
				p.leave(p.players[h.Session])
				p.join(poolHolder(benchOwners + i))
				p.settle()
			}
			p.requireSettled()
			return p
		}},
	}
	for _, s := range stages {
		b.Run(s.name, func(b *testing.B) {
			var perRange, ranges float64
			for b.Loop() {
				p := s.build(b)
				ranges = float64(p.machine.Sizes().Ranges)
				perRange = float64(freedWith(p)) / ranges
			}
			b.ReportMetric(perRange, "bytes/range")
			b.ReportMetric(ranges, "ranges")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// freedWith returns how much memory is freed with the pool's machine. Shared memory, such as the holders, does not
// count.
func freedWith(p *pool) uint64 {
	with := heapInUse()
	runtime.KeepAlive(p.machine)
	p.machine = nil
	without := heapInUse()
	runtime.KeepAlive(p)
	return with - without
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // frees objects with finalizers
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
