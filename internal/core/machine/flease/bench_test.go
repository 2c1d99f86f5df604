package flease_test

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// BenchmarkAcquire is the cost of one lease among three processes in the machines, without a
// network.
func BenchmarkAcquire(b *testing.B) {
	w := newWorld(&testing.T{}, 3)
	names := make([]string, b.N)
	for i := range names {
		names[i] = fmt.Sprintf("resource-%d", i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	box := make([]letter, 6) // one for each pair
	pump := func() {
		for sent := 1; sent > 0; {
			sent = 0
			for _, id := range w.cfg.Peers {
				w.members[id].m.Flush(w.time(id), func(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
					l := &box[sent]
					l.to, l.e, l.msgs = to, *e, append(l.msgs[:0], msgs...)
					sent++
				})
			}
			for i := range box[:sent] {
				l := &box[i]
				w.members[l.to].m.Receive(w.time(l.to), &l.e, l.msgs)
			}
		}
	}
	for i, name := range names {
		if err := w.members[flease.Process(i%3+1)].m.Acquire(w.time(1), name); err != nil {
			b.Fatal(err)
		}
		if i%1000 == 999 {
			pump()
		}
	}
	pump()
	got := 0
	for _, mb := range w.members {
		for _, n := range mb.m.Notices() {
			if n.What == flease.Acquired {
				got++
			}
		}
	}
	if got != b.N {
		b.Fatalf("%d of %d were acquired", got, b.N)
	}
}
