package election_test

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/machine/election"
	"github.com/leasehold-dev/leasehold/internal/storage"
)

const (
	wall     = 1_800_000_000 // what the wall clock says at 0
	farthest = 1 << 28       // years, in seconds
)

// A record that was written long ago may be from a backup. Whoever takes over goes on above all
// that may have been forgotten, and has that in the record before it leads, for those who come after.
// It takes wall clocks for a hint: one that is unknown, or behind, proves nothing.
func TestOldStore(t *testing.T) {
	for _, test := range []struct {
		name  string
		at    int64
		wall  int64
		floor uint64
		want  uint64
	}{
		{"written just now", wall - 5, wall, 0, 0},
		{"a moment before it is old", wall + 3 - 72, wall, 7, 7}, // 20 times 3.6 s
		{"old", wall + 3 - 73, wall, 7, (wall + 3) << 20},
		{"of a clock that is ahead", wall + 5000, wall, 7, 7},
		{"of an unknown time", 0, wall, 7, 7},
		{"while our clock is unknown", 1, 0, 7, 7},
		{"with a floor above our clock", wall + 3 - 73, wall, wall << 21, wall<<21 + storage.Forgettable(3+73)},
		{"older than anything", wall - farthest, wall, 7, 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := standby(t)
			rec := theirs(5, 2, 9)
			rec.At, rec.Floor = test.at, test.floor
			c.step(0, election.Seen{Record: rec, Wall: test.wall})
			old := test.want != test.floor
			term, want, forgotten := 3, []string{"takeover"}, ""
			if old { // there may have been a term in each second since
				term, want, forgotten = 3+73, append(want, "old store"), ", much may be forgotten"
			}
			leads := fmt.Sprintf("lead in term %d until 6.600s", term)
			if test.want > 0 {
				leads += fmt.Sprintf(" above %d", test.want)
			}
			c.advance(3600*ms, append(want, fmt.Sprintf("swap 5 for term %d beat 1", term))...)
			c.step(3700*ms, done(6), "elected", leads+forgotten)
			// It is said once, and stays in the record.
			actions, _ := c.machine.Advance(4600 * ms)
			swap := actions[0].(election.Swap).New
			if swap.Floor != test.want || test.wall != 0 && swap.At != test.wall+4 {
				t.Errorf("it goes on with a floor of %d at %d, want %d", swap.Floor, swap.At, test.want)
			}
		})
	}
}

// A store that is restored while managers run has an older record than they have seen, with an older
// version, or with a newer one. A leader gives up, a standby waits as for any record that it sees first,
// and the next term is above all that they know of.
func TestRestoredWhileWeRun(t *testing.T) {
	t.Run("under a leader", func(t *testing.T) {
		c := leader(t)
		c.advance(1000*ms, "swap 1 for term 1 beat 2")
		c.step(1100*ms, done(20), "go on until 4.000s")
		c.advance(2000*ms, "swap 20 for term 1 beat 3")
		c.step(2100*ms, conflict(), "swap unknown", "read afresh")
		c.step(2200*ms, election.Seen{Record: theirs(12, 1, 9), AtLeast: 19}, "old record") // asked for before we knew
		c.step(2300*ms, election.Seen{Record: theirs(12, 0, 9), AtLeast: 20}, "beaten", "forgotten", "deposed", "step down")
		c.wantLeads(2300*ms, false)
		c.advance(2800*ms, "read")
		c.step(2900*ms, seen(theirs(12, 0, 9)))
		c.advance(5900*ms, "takeover", "swap 12 for term 2 beat 1")
		c.step(6000*ms, done(13), "elected", fmt.Sprintf("lead in term 2 until 8.900s above %d, much may be forgotten", storage.Forgettable(2)))
		c.advance(6900*ms, "swap 13 for term 2 beat 2")
	})
	t.Run("to when it led itself", func(t *testing.T) {
		c := leader(t)
		c.advance(1000*ms, "swap 1 for term 1 beat 2")
		c.step(1100*ms, done(20), "go on until 4.000s")
		c.step(1200*ms, seen(ours(21, 1, 1)), "forgotten", "deposed", "step down", "read")
		c.advance(4799*ms, "read") // another may lead, in what was forgotten
		c.advance(4800*ms, "own record", "swap 21 for term 2 beat 1")
	})
	t.Run("under a standby", func(t *testing.T) {
		c := standby(t)
		c.step(0, seen(theirs(50, 7, 9)))
		c.step(100*ms, seen(theirs(51, 5, 3)), "forgotten")
		c.advance(3699*ms, "read")
		c.advance(3700*ms, "takeover", "swap 51 for term 8 beat 1")
		c.step(3800*ms, done(52), "elected", fmt.Sprintf("lead in term 8 until 6.700s above %d, much may be forgotten", storage.Forgettable(8)))
	})
}
