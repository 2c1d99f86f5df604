package manager_test

import (
	"fmt"
	"testing"
	"time"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A leader resigns, and the wall clock of its successor is two minutes ahead. The standby has observed a change of the
// record, so it measures the record's age with its own monotonic clock: it grants as soon as with equal clocks, for
// leases of any length, and lookups report no loss.
func TestClockOfSuccessorAhead(t *testing.T) {
	for _, lease := range []time.Duration{10 * time.Second, 30 * time.Second, 60 * time.Second} {
		t.Run(lease.String(), func(t *testing.T) {
			equal, ahead := firstGrant(t, lease, 0), firstGrant(t, lease, 2*time.Minute)
			t.Logf("first grant after %v with equal clocks, %v otherwise", equal, ahead)
			if ahead > equal+time.Second || equal > 2*time.Second {
				t.Errorf("first grant after %v, and after %v with equal clocks", ahead, equal)
			}
		})
	}
}

// firstGrant returns the time from a leader's resignation to the first grant to a new owner.
func firstGrant(t *testing.T, lease, ahead time.Duration) (took time.Duration) {
	inBubble(t, func(t *testing.T, c *cluster) {
		booted := time.Now().Add(-time.Minute)
		c.start("m1")
		cfg := pool()
		cfg.Timing = &leaseholdv1.Timing{Lease: int64(lease), Renew: int64(lease / 4), Drift: 1.2}
		c.create("m1", cfg)
		c.wall = func() time.Time { return time.Now().Add(ahead) }
		c.boot = func() (string, time.Duration) { return "another machine", time.Since(booted) }
		c.start("m2")
		s := c.service()
		c.stop("m1")
		begun := time.Now()
		e := c.join("e")
		eventually(t, 5*time.Minute, "it has a lease", func() bool { return len(e.Leases()) > 0 })
		took = time.Since(begun)
		time.Sleep(time.Minute) // longer than the lookup waits for a reply
		lost := endedSince(s.held, s.owners...)
		if more := ranges(collectLosses(t, s.lookup, s.lsn, time.Second)).Subtract(lost); len(more) > 0 {
			t.Errorf("%v is reported as lost; only %v has another owner", more, lost)
		}
	})
	return took
}

// A wildClock is a wall clock with an error that is drawn at each start of a manager.
type wildClock struct {
	name   string
	says   func(start int) time.Time
	steady bool // the error is constant
}

func wildClocks() []wildClock {
	const year = 365 * 24 * time.Hour
	by := func(ahead time.Duration) func(int) time.Time {
		return func(int) time.Time { return time.Now().Add(ahead) }
	}
	steps := []time.Duration{10 * year, -10 * year, 0, 200 * year, time.Hour, -29 * year, 2 * time.Minute}
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // virtual time starts here
	return []wildClock{
		{"months ahead", by(90 * 24 * time.Hour), true},
		{"months behind", by(-90 * 24 * time.Hour), true},
		{"years ahead", by(50 * year), true},
		{"centuries ahead", by(280 * year), true}, // no time that Clock accepts
		{"years back", by(-25 * year), true},
		{"before 1970", by(-60 * year), true},
		{"stands at 0", func(int) time.Time { return time.Unix(0, 0) }, false},
		{"steps every minute", func(int) time.Time { now := time.Now(); return now.Add(steps[now.Minute()%len(steps)]) }, false},
		{"twice the rate", func(int) time.Time { now := time.Now(); return now.Add(now.Sub(epoch)) }, false},
		{"half the rate", func(int) time.Time { now := time.Now(); return now.Add(-now.Sub(epoch) / 2) }, false},
		{"years ahead, corrected later", func(int) time.Time {
			now := time.Now()
			if now.Sub(epoch) < 5*time.Minute {
				return now.Add(5 * year)
			}
			return now
		}, false},
		{"steps with each start", func(start int) time.Time { return time.Now().Add(steps[start%len(steps)]) }, false},
	}
}

// The wall clock of one manager, or of all, is wildly wrong, with and without a known uptime. All managers crash
// several times. The group elects a leader again, and no lease is lost.
func TestWildWallClock(t *testing.T) {
	type setting struct {
		managers    int
		all, uptime bool
	}
	settings := []setting{{1, false, false}, {1, false, true}, {3, false, false}, {3, false, true}, {3, true, false}, {3, true, true}}
	for i, clock := range wildClocks() {
		for j, s := range settings {
			if testing.Short() && j != i%len(settings) {
				continue // one setting for each clock
			}
			t.Run(fmt.Sprintf("%s, %d managers, all %t, uptime known %t", clock.name, s.managers, s.all, s.uptime), func(t *testing.T) {
				wildWallClock(t, clock, group(s.managers), s.all, s.uptime)
			})
		}
	}
}

func wildWallClock(t *testing.T, clock wildClock, managers []string, all, uptime bool) {
	inBubble(t, func(t *testing.T, c *cluster) {
		if !uptime {
			c.boot = func() (string, time.Duration) { return "", 0 }
		}
		starts := 0
		start := func() {
			for i, name := range managers {
				c.wall = nil
				if i == 0 || all {
					n := starts
					c.wall = func() time.Time { return clock.says(n) }
				}
				starts++
				c.start(name)
			}
		}
		start()
		c.leads(time.Minute)
		c.create(managers[0], pool())
		s := c.service()
		for _, outage := range []time.Duration{20 * time.Second, 10 * time.Minute, 20 * time.Second} {
			for _, name := range managers {
				c.crash(name)
			}
			time.Sleep(outage)
			start()
			took := s.resumes(22 * time.Second)
			if agree := clock.steady && (all || len(managers) == 1); agree && uptime && outage < time.Minute && took > 10*time.Second {
				t.Errorf("all keys are owned %v after the start, although the downtime of %v is known", took, outage)
			}
		}
		// New leases are granted, too.
		e := c.join("e")
		eventually(t, 10*time.Second, "a new owner gets a lease", func() bool { return len(e.Leases()) > 0 })
	})
}
