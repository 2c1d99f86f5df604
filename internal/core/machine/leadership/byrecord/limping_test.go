package byrecord_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
)

// share runs the group, and returns the fraction of time in which a manager had authority.
func (g *paperGroup) share(d time.Duration) float64 {
	g.t.Helper()
	led, n := 0, 0
	for end := g.now + d; g.now < end; n++ {
		g.run(paperTick)
		if g.leader() != nil {
			led++
		}
	}
	return float64(led) / float64(n)
}

// limpingGroup returns managers whose writes take these fractions of the TTL. The first one leads.
func limpingGroup(t *testing.T, writes ...float64) *paperGroup {
	t.Helper()
	g := newPaperGroup(t, make([]float64, len(writes))...)
	for i, m := range g.members {
		m.rate, m.dead = 1, i > 0
	}
	g.run(time.Second)
	for i, m := range g.members {
		m.latency = time.Duration(writes[i] / 2 * float64(paperTTL))
		if m.dead {
			m.start()
		}
	}
	if l := g.leader(); l != g.members[0] {
		t.Fatal("the first manager does not lead")
	}
	return g
}

// A leader with slow writes yields to a manager with fast ones, whether its renewals leave some
// authority or none. Up to half a TTL is normal, and no reason to yield.
func TestLimpingLeaderYields(t *testing.T) {
	for _, w := range []float64{0.1, 0.4, 0.49, 0.52, 0.6, 0.7, 0.8, 0.9, 0.99, 1.01, 1.1, 1.18, 1.3, 2} {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			g := limpingGroup(t, w, 0)
			first := g.share(10 * paperTTL)
			if later := g.share(20 * paperTTL); later < 0.999 || first < 0.5 {
				t.Errorf("some manager has authority for %.3f of the first ten TTLs and %.3f of the next twenty", first, later)
			}
			if l := g.leader(); l == nil || (l == g.members[0]) != (w <= 0.5) {
				t.Errorf("the leader is %+v", l)
			}
		})
	}
}

// If all managers are slow, or there is only one, a resignation does not help. Resignations become
// ever rarer, and the remaining authority is the possible one: TTL-w for each w.
func TestLimpingInVain(t *testing.T) {
	for _, managers := range []int{1, 3} {
		for _, w := range []float64{0.55, 0.8} {
			t.Run(fmt.Sprintf("%d managers, %v", managers, w), func(t *testing.T) {
				writes := make([]float64, managers)
				for i := range writes {
					writes[i] = w
				}
				g := limpingGroup(t, writes...)
				g.run(130 * paperTTL)
				if got, want := g.share(100*paperTTL), min(1, (1-w)/w); got < 0.85*want {
					t.Errorf("some manager has authority for %.3f of the time, %.3f are possible", got, want)
				}
			})
		}
	}
}

// A manager that has yielded leads again if no other does, and at once if its writes are fast.
func TestLimpingLeaderIsTheLastOne(t *testing.T) {
	g := limpingGroup(t, 1.1, 0)
	g.run(10 * paperTTL)
	slow, fast := g.members[0], g.members[1]
	if g.leader() != fast {
		t.Fatal("the leader has not yielded")
	}
	slow.latency, fast.dead = 0, true
	g.run(3 * paperTTL) // it waits for an unchanged record, and stands back once
	if g.leader() != slow {
		t.Error("no leader")
	}
}

// A single outage of the store, of any length, is no reason to resign.
func TestOutageIsNoLimp(t *testing.T) {
	g := newPaperGroup(t, 1)
	g.run(time.Minute)
	for range 3 {
		g.members[0].cut = true
		g.run(5 * paperTTL)
		g.members[0].cut = false
		g.run(2 * paperTTL)
	}
	if n := len(g.led); n != 1 {
		t.Errorf("the manager has led in %d terms", n)
	}
}

// The steps of a resignation, and of standing back.
func TestLimpingSteps(t *testing.T) {
	c := leader(t)
	c.advance(1*second, "swap 1 for term 1 beat 2")
	c.advance(3*second, "authority lapsed")
	c.step(3200*ms, done(2), "authority regained", "extend until 4.000s", "swap 2 for term 1 beat 3")
	c.advance(4*second, "authority lapsed")
	c.step(5400*ms, done(3), "authority regained", "extend until 6.200s", "swap 3 for term 1 beat 4")
	c.advance(6200*ms, "authority lapsed")
	c.step(7600*ms, done(4), "limping", "step down", "swap 4 for term 1 beat 5, resigned")
	c.wantLeads(7600*ms, false)
	c.step(9800*ms, done(5))
	if c.wake != 10300*ms {
		t.Errorf("next read at %v, want one poll after the resignation", c.wake)
	}
	c.advance(10300*ms, "read")
	r := c.swap.New
	r.Version = 5
	c.step(13399*ms, seen(r), "read") // it stands back for TTL x drift
	c.advance(13400*ms, "resignation seen", "swap 5 for term 2 beat 1")
	c.step(13500*ms, done(6), "elected", "lead in term 2 until 16.400s", "resignation fruitless")
}

// A shutdown while a manager yields waits for nothing else.
func TestResignWhileYielding(t *testing.T) {
	c := leader(t)
	now := second
	c.advance(now, "swap 1 for term 1 beat 2")
	for !c.swap.New.Resigned {
		now = now.Add(2500 * time.Millisecond)
		c.machine.Advance(now)
		actions, _ := c.machine.Step(now, byrecord.Swapped{Swap: c.swap, Outcome: 1, Version: c.swap.Prev + 1})
		for _, a := range actions {
			if s, ok := a.(byrecord.Swap); ok {
				c.swap = s
			}
		}
	}
	c.step(now, byrecord.Resign{}, "resigning")
	c.step(now+100*ms, done(c.swap.Prev+1), "has resigned")
}

// If another manager takes over while the resignation is in flight, the resignation is superfluous.
func TestBeatenWhileYielding(t *testing.T) {
	c := leader(t)
	now := second
	c.advance(now, "swap 1 for term 1 beat 2")
	for !c.swap.New.Resigned {
		now = now.Add(2500 * time.Millisecond)
		c.machine.Advance(now)
		actions, _ := c.machine.Step(now, byrecord.Swapped{Swap: c.swap, Outcome: 1, Version: c.swap.Prev + 1})
		for _, a := range actions {
			if s, ok := a.(byrecord.Swap); ok {
				c.swap = s
			}
		}
	}
	v := c.swap.Prev + 1
	c.step(now+1*second, conflict(), "swap unknown", "read afresh")
	c.step(now+1100*ms, seen(theirs(v, 2, 1)), "beaten")
	c.advance(now+1600*ms, "read")
	c.advance(now+4699*ms, "read") // the record is unchanged for 3.6 s; no need to stand back
	c.advance(now+4700*ms, "takeover", "swap "+fmt.Sprint(v)+" for term 3 beat 1")
}
