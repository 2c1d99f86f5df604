package flease_test

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/machine/flease"
)

// One lease, acquired among three processes, without any network: what the
// machines alone cost.
func BenchmarkAcquire(b *testing.B) {
	w := newWorld(&testing.T{}, 3)
	names := make([]string, b.N)
	for i := range names {
		names[i] = fmt.Sprintf("resource-%d", i)
	}
	type post struct {
		to   flease.Process
		e    flease.Envelope
		msgs []flease.Message
	}
	b.ReportAllocs()
	b.ResetTimer()
	var box []post
	pump := func() {
		for {
			for _, id := range w.cfg.Peers {
				w.members[id].m.Flush(w.time(id), func(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
					box = append(box, post{to, *e, append([]flease.Message(nil), msgs...)})
				})
			}
			if len(box) == 0 {
				return
			}
			for _, p := range box {
				w.members[p.to].m.Receive(w.time(p.to), &p.e, p.msgs)
			}
			box = box[:0]
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
