package byrecord_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

const (
	wall     = 1_800_000_000 // wall clock at 0
	farthest = 1 << 28       // years, in seconds
)

// A manager that takes over knows that its store was not restored if it has observed a change of
// the record, or if the record was written recently in the same boot of its machine. Wall clocks
// prove nothing: they only choose the numbers at which an uncertain leader continues, and those are
// in the record before it leads, for all later leaders.
func TestUncertain(t *testing.T) {
	const here, hour = "boot 1", time.Hour
	for _, test := range []struct {
		name      string
		boot      string
		uptime    time.Duration // of the record
		at, wall  int64
		witnessed bool
		slept     bool
		uncertain bool
		term      int
	}{
		{name: "seen to change", witnessed: true, at: wall, wall: wall, term: 3},
		{name: "seen to change, by wall clocks two minutes ago", witnessed: true, at: wall - 120, wall: wall, term: 3},
		{name: "seen to change, by wall clocks years ago", witnessed: true, at: wall - 1<<27, wall: wall, term: 3},
		{name: "seen to change, in the future", witnessed: true, at: wall + 5000, wall: wall, term: 3},
		{name: "seen to change, before a sleep", witnessed: true, slept: true, at: wall, wall: wall, uncertain: true, term: 3 + 3},
		{name: "written here just now", boot: here, uptime: hour, at: wall, wall: wall, term: 3},
		{name: "written here just now, by wall clocks long ago", boot: here, uptime: hour, at: wall + 3 - 5000, wall: wall, uncertain: true, term: 3 + 5000},
		{name: "written here a while ago", boot: here, uptime: hour - 68*time.Second, at: wall - 68, wall: wall, term: 3},
		{name: "written here too long ago", boot: here, uptime: hour - 69*time.Second, at: wall, wall: wall, uncertain: true, term: 3 + 3},
		{name: "written here in the future", boot: here, uptime: 2 * hour, at: wall, wall: wall, uncertain: true, term: 3 + 3},
		{name: "written here, before a sleep", boot: here, uptime: hour, slept: true, at: wall, wall: wall, uncertain: true, term: 3 + 3},
		{name: "written on another boot", boot: "boot 2", uptime: hour, at: wall, wall: wall, uncertain: true, term: 3 + 3},
		{name: "written elsewhere", at: wall, wall: wall, uncertain: true, term: 3 + 3},
		{name: "written elsewhere, long ago", at: wall + 3 - 73, wall: wall, uncertain: true, term: 3 + 73},
		{name: "written elsewhere, by a clock that is ahead", at: wall + 5000, wall: wall, uncertain: true, term: 3},
		{name: "written elsewhere, at an unknown time", wall: wall, uncertain: true, term: 3},
		{name: "written elsewhere, decades ago", at: wall - farthest, wall: wall, uncertain: true, term: 3},
		{name: "while our clock is unknown", at: wall, uncertain: true, term: 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := standby(t, func(c *byrecord.Config) { c.Boot = here })
			rec := theirs(5, 2, 9)
			rec.At, rec.Floor, rec.Boot, rec.Uptime = test.at, 7, test.boot, test.uptime
			if test.witnessed {
				before := rec
				before.Version, before.Beat = 4, 8
				c.step(0, byrecord.Seen{Record: before, Wall: test.wall, Uptime: hour})
			}
			c.step(0, byrecord.Seen{Record: rec, Wall: test.wall, Uptime: hour})
			if test.slept {
				c.step(0, byrecord.Slept{}, "slept", "read")
				c.step(0, byrecord.Seen{Record: rec, Wall: test.wall, Uptime: hour}) // reply to the read
			}
			want, floor, ends := []string{"takeover"}, uint64(7), ""
			if test.uncertain {
				want, ends = append(want, "uncertain"), ", uncertain"
				if floor = storage.Clock(test.wall + 3); test.wall == 0 {
					floor = storage.Clock(test.at) + storage.Forgettable(leasehold.Term(test.term))
				}
			}
			c.advance(3600*ms, append(want, fmt.Sprintf("swap 5 for term %d beat 1", test.term))...)
			c.step(3700*ms, done(6), "elected", fmt.Sprintf("lead in term %d until 6.600s above %d%s", test.term, floor, ends))
			actions, _ := c.machine.Advance(4600 * ms)
			if next := actions[0].(byrecord.Swap).New; next.Floor != floor {
				t.Errorf("floor %d, want %d", next.Floor, floor)
			}
		})
	}
}

// A store that is restored while managers run has an older record than they have read, with an
// older version or a newer one. A leader steps down, a standby waits as for any record that it
// reads first, and the next term is above all known ones.
func TestRestoredWhileWeRun(t *testing.T) {
	t.Run("under a leader", func(t *testing.T) {
		c := leader(t)
		c.advance(1000*ms, "swap 1 for term 1 beat 2")
		c.step(1100*ms, done(20), "extend until 4.000s")
		c.advance(2000*ms, "swap 20 for term 1 beat 3")
		c.step(2100*ms, conflict(), "swap unknown", "read afresh")
		c.step(2200*ms, byrecord.Seen{Record: theirs(12, 1, 9), AtLeast: 19}, "old record") // requested before that version was known
		c.step(2300*ms, byrecord.Seen{Record: theirs(12, 0, 9), AtLeast: 20}, "beaten", "history lost", "deposed", "step down")
		c.wantLeads(2300*ms, false)
		c.advance(2800*ms, "read")
		c.step(2900*ms, seen(theirs(12, 0, 9)))
		c.advance(5900*ms, "takeover", "uncertain", "swap 12 for term 2 beat 1")
		c.step(6000*ms, done(13), "elected", fmt.Sprintf("lead in term 2 until 8.900s above %d, uncertain, restored", storage.Forgettable(2)))
		c.advance(6900*ms, "swap 13 for term 2 beat 2")
	})
	t.Run("to an earlier record of its own", func(t *testing.T) {
		c := leader(t)
		c.advance(1000*ms, "swap 1 for term 1 beat 2")
		c.step(1100*ms, done(20), "extend until 4.000s")
		c.step(1200*ms, seen(ours(21, 1, 1)), "history lost", "deposed", "step down", "read")
		c.advance(4799*ms, "read") // another manager may lead, in the lost history
		c.advance(4800*ms, "own record", "uncertain", "swap 21 for term 2 beat 1")
	})
	t.Run("under a standby that alone has read a higher floor", func(t *testing.T) {
		c := standby(t)
		floor := func(r storage.Record, floor uint64) storage.Record {
			r.Floor = floor
			return r
		}
		c.step(0, seen(floor(theirs(50, 7, 9), 100)))
		c.step(100*ms, seen(floor(theirs(51, 5, 3), 50)), "history lost")
		c.step(200*ms, seen(floor(theirs(52, 8, 1), 70))) // another manager takes over, which has not read it
		c.step(300*ms, seen(floor(theirs(53, 8, 2), 70)))
		c.advance(3899*ms, "read")
		c.advance(3900*ms, "takeover", "uncertain", "swap 53 for term 9 beat 1")
		c.step(4000*ms, done(54), "elected", fmt.Sprintf("lead in term 9 until 6.900s above %d, uncertain, restored", 100+storage.Forgettable(9)))
	})
	t.Run("under a standby", func(t *testing.T) {
		c := standby(t)
		c.step(0, seen(theirs(50, 7, 9)))
		c.step(100*ms, seen(theirs(51, 5, 3)), "history lost")
		c.advance(3699*ms, "read")
		c.advance(3700*ms, "takeover", "uncertain", "swap 51 for term 8 beat 1")
		c.step(3800*ms, done(52), "elected", fmt.Sprintf("lead in term 8 until 6.700s above %d, uncertain, restored", storage.Forgettable(8)))
	})
}
