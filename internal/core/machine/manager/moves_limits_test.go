package manager_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

func twoMoves(c *manager.Config) { c.Moves = 2 }

// wantMoving fails unless so many moves go from and to each owner.
func (l *paperLeader) wantMoving(want map[leasehold.OwnerID][2]int) {
	l.t.Helper()
	for _, o := range l.machine.Owners(l.now) {
		if got := [2]int{o.MovesOut, o.MovesIn}; got != want[o.Holder.Owner] {
			l.t.Errorf("%s has %v moves from and to it, want %v", o.Holder.Owner, got, want[o.Holder.Owner])
		}
	}
}

// An owner sends no more than so many ranges at a time, to whomever, and each
// that is done makes room for the next.
func TestMovesFromAnOwnerAreLimited(t *testing.T) {
	l, p := newMovingLeader(t, "aaaaaaaaaa", twoMoves)
	a := l.mover("a")
	l.mover("b")
	l.mover("c")
	p.give("abacabacab") // five ranges, to two owners
	l.rethink()
	if s := l.machine.Sizes(); s.Moves != 2 || s.Backlog != 3 {
		t.Fatalf("%d are under way and %d wait", s.Moves, s.Backlog)
	}
	l.wantMoving(map[leasehold.OwnerID][2]int{"a": {2, 0}, "b": {0, 1}, "c": {0, 1}})
	for left := 5; left > 0; left-- {
		if n := len(a.departures()); n != min(2, left) {
			t.Fatalf("with %d to go, the source is to send %d", left, n)
		}
		a.completes(a.departures()[0])
		l.settle()
		a.forgets()
		a.say()
		l.settle()
	}
	for i, owner := range "abacabacab" {
		l.wantHolder(leasehold.Key(i)<<56, leasehold.OwnerID(owner), "in the end")
	}
}

// An owner takes in no more than so many at a time, from whomever.
func TestMovesToAnOwnerAreLimited(t *testing.T) {
	l, p := newMovingLeader(t, "aabbcc", twoMoves)
	a, b, c := l.mover("a"), l.mover("b"), l.mover("c")
	l.mover("d")
	p.give("adbdcd")
	l.rethink()
	if s := l.machine.Sizes(); s.Moves != 2 || s.Backlog != 1 {
		t.Fatalf("%d are under way and %d wait", s.Moves, s.Backlog)
	}
	l.wantMoving(map[leasehold.OwnerID][2]int{"a": {1, 0}, "b": {1, 0}, "c": {0, 0}, "d": {0, 2}})
	b.completes(b.departures()[0])
	l.settle()
	if len(c.departures()) != 1 || len(a.departures()) != 1 {
		t.Errorf("when there is room, a is to send %v and c %v", a.departures(), c.departures())
	}
}

// A source that does not get on keeps none but its target from anything.
func TestSlowSourceBlocksNobodyElse(t *testing.T) {
	l, p := newMovingLeader(t, "aaaabbbb", func(c *manager.Config) { c.Moves = 1 })
	slow, b := l.mover("a"), l.mover("b")
	l.mover("c")
	l.mover("d")
	p.give("acacbdbd")
	l.rethink()
	for range 2 {
		if len(b.departures()) != 1 {
			t.Fatalf("b is to send %v", b.departures())
		}
		b.completes(b.departures()[0])
		l.settle()
		b.forgets()
		l.renew(5*time.Second, l.owners...)
	}
	if n := len(slow.departures()); n != 1 {
		t.Errorf("the slow one is to send %d", n)
	}
	l.wantHolder(7<<56, "d", "while another is slow")
}

// A move that makes no progress for too long has failed, and the range stays
// where it is. Whatever the source says anew is progress.
func TestMoveTimesOut(t *testing.T) {
	l, _, a, _, d := begunMove(t)
	since := len(l.log)
	for i := range 3 { // 50 s each
		a.reports(d, protocol.MoveCopying)
		a.moving.reports[0].Records = uint64(i)
		l.renew(50*time.Second, l.owners...)
		a.wantDepartures(cell(1, 2))
	}
	a.reports(d, protocol.MoveStopped)
	l.renew(60*time.Second, l.owners...)
	a.wantDepartures(cell(1, 2))
	l.renew(5*time.Second, l.owners...)
	a.wantDepartures()
	if l.noted(manager.NoteMoveTimeout) != 1 {
		t.Errorf("it is noted %d times", l.noted(manager.NoteMoveTimeout))
	}
	l.wantChanges(since)
	a.forgets()
	l.renew(2*time.Minute, l.owners...)
	a.wantDepartures()
	l.wantHolder(1<<56, "a", "after it has failed")
}

// What waits for its turn begins when another has failed, and not only when its
// source is heard again.
func TestTimeoutMakesRoom(t *testing.T) {
	l, p := newMovingLeader(t, "aaaa", func(c *manager.Config) { c.Moves = 1 })
	a := l.mover("a")
	l.mover("b")
	p.give("abab")
	l.rethink()
	a.wantDepartures(cell(1, 2))
	l.renew(55*time.Second, l.owners...)
	l.advance(6 * time.Second)
	a.read()
	a.wantDepartures(cell(3, 0))
}

// What came too late is believed all the same, since the source has let go.
func TestTimedOutMoveIsDone(t *testing.T) {
	l, _, a, _, d := begunMove(t)
	since := len(l.log)
	l.renew(65*time.Second, l.owners...)
	a.wantDepartures()
	a.completes(d)
	l.settle()
	l.wantChanges(since, "moved")
	l.wantHolder(1<<56, "b", "as the source said")
}

// An owner that is to hold nothing is not left with what could not be moved: it
// is tried again, but not at once.
func TestRetiringRetries(t *testing.T) {
	for name, retire := range map[string]func(*paperLeader, *paperOwner){
		"it parts": func(l *paperLeader, a *paperOwner) {
			a.moving.parting = true
			a.say()
		},
		"it is drained": func(l *paperLeader, a *paperOwner) {
			l.step(manager.Order{Kind: manager.OrderDrain, Owner: a.holder.Owner})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, p := newMovingLeader(t, "a")
			a := l.mover("a")
			l.mover("b")
			p.give("b")
			retire(l, a)
			l.settle()
			for range 3 {
				a.wantDepartures(leasehold.All)
				d := a.departures()[0]
				a.reports(d, protocol.MoveFailed)
				a.say()
				a.read()
				a.wantDepartures()
				a.forgets()
				a.say()
				a.read()
				a.wantDepartures() // not at once
				if a.moving.last.Idle {
					t.Error("it need not wait, and it holds what could be moved")
				}
				l.renew(15*time.Second, l.owners...)
			}
			a.wantDepartures(leasehold.All)
			a.completes(a.departures()[0])
			l.settle()
			l.wantHolder(0, "b", "in the end")
		})
	}
}

// What one owner cannot take from who wants to go, another can.
func TestRetiringGoesElsewhere(t *testing.T) {
	l, p := newMovingLeader(t, "a")
	a := l.mover("a")
	l.mover("b")
	l.mover("c")
	p.give("b")
	a.moving.parting = true
	a.say()
	l.settle()
	var to []leasehold.OwnerID
	for range 3 {
		d := a.departures()[0]
		to = append(to, d.To.Owner)
		a.reports(d, protocol.MoveFailed)
		a.say()
		a.read()
		a.forgets()
		l.renew(15*time.Second, l.owners...)
	}
	if !slices.Equal(to, []leasehold.OwnerID{"b", "c", "b"}) {
		t.Errorf("it is asked to send its range to %v", to)
	}
}

// Those who want to go come before those who are only to be relieved.
func TestRetiringGoesFirst(t *testing.T) {
	l, p := newMovingLeader(t, "aabb", func(c *manager.Config) { c.Moves = 1 })
	a, b := l.mover("a"), l.mover("b")
	l.mover("c")
	b.moving.parting = true
	p.give("accc")
	b.say()
	l.settle()
	if len(b.departures()) != 1 || len(a.departures()) != 0 {
		t.Errorf("b, which parts, is to send %v, and a %v", b.departures(), a.departures())
	}
}

// Nobody is asked to send what it has not confirmed to have.
func TestNoMoveOfWhatIsUnconfirmed(t *testing.T) {
	l, p := newMovingLeader(t, "aaa")
	l.mover("b")
	a := l.newcomer("a")
	a.moving = &moving{}
	a.greet()
	p.give("bbb")
	l.step(manager.Order{Kind: manager.OrderRebalance})
	if s := l.machine.Sizes(); s.Moves != 0 || s.Backlog != 1 {
		t.Fatalf("%d moves are under way and %d wait, of a lease that nobody knows of", s.Moves, s.Backlog)
	}
	l.settle()
	a.wantDepartures(leasehold.All)
}
