package demo

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestAbsencesAreMeasured: a key is away for 40 ms, twice. What is measured is
// that, and a round of questions more at most.
func TestAbsencesAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const away = 40 * time.Millisecond
		a := &aTable{}
		l := newLoad(&Config{Users: 50, ValueSize: 1, Lease: minLease}, a, newServer())
		defer l.close()
		p := newProber(l)
		asking, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.run(asking, t.Context())
		}()
		for range 2 {
			pause(t.Context(), 101*time.Millisecond)
			a.takeAway(l.users[9].key, away)
		}
		pause(t.Context(), time.Second)
		stop()
		<-done
		got := p.absence()
		if got.keys != 50 || got.times != 2 || got.failures != 0 {
			t.Errorf("got %+v", got)
		}
		if got.median < away || got.longest > away+2*probeEvery {
			t.Errorf("measured %v and %v, want %v or a little more", got.median, got.longest, away)
		}
	})
}
