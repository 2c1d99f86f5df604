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

// wantMoving fails unless each owner has the given numbers of moves from and to it.
func (l *paperLeader) wantMoving(want map[leasehold.OwnerID][2]int) {
	l.t.Helper()
	for _, o := range l.machine.Owners(l.now) {
		if got := [2]int{o.MovesOut, o.MovesIn}; got != want[o.Holder.Owner] {
			l.t.Errorf("%s has %v moves from and to it, want %v", o.Holder.Owner, got, want[o.Holder.Owner])
		}
	}
}

// The number of moves from an owner is limited, over all targets, and each completed move lets the next one start.
func TestMovesFromAnOwnerAreLimited(t *testing.T) {
	l, p := newMovingLeader(t, "aaaaaaaaaa", twoMoves)
	a := l.mover("a")
	l.mover("b")
	l.mover("c")
	p.give("abacabacab") // five ranges, to two owners
	l.replan()
	if s := l.machine.Sizes(); s.Moves != 2 || s.Backlog != 3 {
		t.Fatalf("%d moves in progress and %d waiting", s.Moves, s.Backlog)
	}
	l.wantMoving(map[leasehold.OwnerID][2]int{"a": {2, 0}, "b": {0, 1}, "c": {0, 1}})
	for left := 5; left > 0; left-- {
		if n := len(a.departures()); n != min(2, left) {
			t.Fatalf("with %d left, the source has %d departures", left, n)
		}
		a.completes(a.departures()[0])
		l.settle()
		a.stopsReporting()
		a.send()
		l.settle()
	}
	for i, owner := range "abacabacab" {
		l.wantHolder(leasehold.Key(i)<<56, leasehold.OwnerID(owner), "after all moves")
	}
}

// The number of moves to an owner is limited, over all sources.
func TestMovesToAnOwnerAreLimited(t *testing.T) {
	l, p := newMovingLeader(t, "aabbcc", twoMoves)
	a, b, c := l.mover("a"), l.mover("b"), l.mover("c")
	l.mover("d")
	p.give("adbdcd")
	l.replan()
	if s := l.machine.Sizes(); s.Moves != 2 || s.Backlog != 1 {
		t.Fatalf("%d moves in progress and %d waiting", s.Moves, s.Backlog)
	}
	l.wantMoving(map[leasehold.OwnerID][2]int{"a": {1, 0}, "b": {1, 0}, "c": {0, 0}, "d": {0, 2}})
	b.completes(b.departures()[0])
	l.settle()
	if len(c.departures()) != 1 || len(a.departures()) != 1 {
		t.Errorf("after a completed move, a has departures %v and c %v", a.departures(), c.departures())
	}
}

// A slow source blocks only its target.
func TestSlowSourceBlocksOnlyItsTarget(t *testing.T) {
	l, p := newMovingLeader(t, "aaaabbbb", func(c *manager.Config) { c.Moves = 1 })
	slow, b := l.mover("a"), l.mover("b")
	l.mover("c")
	l.mover("d")
	p.give("acacbdbd")
	l.replan()
	for range 2 {
		if len(b.departures()) != 1 {
			t.Fatalf("departures of b: %v", b.departures())
		}
		b.completes(b.departures()[0])
		l.settle()
		b.stopsReporting()
		l.renew(5*time.Second, l.owners...)
	}
	if n := len(slow.departures()); n != 1 {
		t.Errorf("the slow source has %d departures", n)
	}
	l.wantHolder(7<<56, "d", "beside a slow source")
}

// A move without progress for too long has failed, and the range stays where it is. Any new report of the source is
// progress.
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
		t.Errorf("noted %d times", l.noted(manager.NoteMoveTimeout))
	}
	l.wantChanges(since)
	a.stopsReporting()
	l.renew(2*time.Minute, l.owners...)
	a.wantDepartures()
	l.wantHolder(1<<56, "a", "after the timeout")
}

// A waiting move starts when another has failed, without a request of its source.
func TestTimeoutMakesRoom(t *testing.T) {
	l, p := newMovingLeader(t, "aaaa", func(c *manager.Config) { c.Moves = 1 })
	a := l.mover("a")
	l.mover("b")
	p.give("abab")
	l.replan()
	a.wantDepartures(cell(1, 2))
	l.renew(55*time.Second, l.owners...)
	l.advance(6 * time.Second)
	a.read()
	a.wantDepartures(cell(3, 0))
}

// A late report of completion is accepted, since the source has released the range.
func TestTimedOutMoveIsDone(t *testing.T) {
	l, _, a, _, d := begunMove(t)
	since := len(l.log)
	l.renew(65*time.Second, l.owners...)
	a.wantDepartures()
	a.completes(d)
	l.settle()
	l.wantChanges(since, "moved")
	l.wantHolder(1<<56, "b", "after the late report")
}

// A retiring owner does not keep a range after a failed move: the move is retried, with a delay.
func TestRetiringRetries(t *testing.T) {
	for name, retire := range map[string]func(*paperLeader, *paperOwner){
		"leaving": func(l *paperLeader, a *paperOwner) {
			a.moving.parting = true
			a.send()
		},
		"draining": func(l *paperLeader, a *paperOwner) {
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
				a.send()
				a.read()
				a.wantDepartures()
				a.stopsReporting()
				a.send()
				a.read()
				a.wantDepartures() // not at once
				if a.moving.last.Idle {
					t.Error("it is idle, and holds a range that can be moved")
				}
				l.renew(15*time.Second, l.owners...)
			}
			a.wantDepartures(leasehold.All)
			a.completes(a.departures()[0])
			l.settle()
			l.wantHolder(0, "b", "after the retry")
		})
	}
}

// If one owner cannot take a range from a retiring owner, another can.
func TestRetiringGoesElsewhere(t *testing.T) {
	l, p := newMovingLeader(t, "a")
	a := l.mover("a")
	l.mover("b")
	l.mover("c")
	p.give("b")
	a.moving.parting = true
	a.send()
	l.settle()
	var to []leasehold.OwnerID
	for range 3 {
		d := a.departures()[0]
		to = append(to, d.To.Owner)
		a.reports(d, protocol.MoveFailed)
		a.send()
		a.read()
		a.stopsReporting()
		l.renew(15*time.Second, l.owners...)
	}
	if !slices.Equal(to, []leasehold.OwnerID{"b", "c", "b"}) {
		t.Errorf("its departures are to %v", to)
	}
}

// Moves from retiring owners start before moves for balance.
func TestRetiringGoesFirst(t *testing.T) {
	l, p := newMovingLeader(t, "aabb", func(c *manager.Config) { c.Moves = 1 })
	a, b := l.mover("a"), l.mover("b")
	l.mover("c")
	b.moving.parting = true
	p.give("accc")
	b.send()
	l.settle()
	if len(b.departures()) != 1 || len(a.departures()) != 0 {
		t.Errorf("departures of b, which is leaving: %v, and of a: %v", b.departures(), a.departures())
	}
}

// A move of a lease starts only after its holder has confirmed it.
func TestNoMoveOfUnconfirmedLeases(t *testing.T) {
	l, p := newMovingLeader(t, "aaa")
	l.mover("b")
	a := l.newcomer("a")
	a.moving = &moving{}
	a.greet()
	p.give("bbb")
	l.step(manager.Order{Kind: manager.OrderRebalance})
	if s := l.machine.Sizes(); s.Moves != 0 || s.Backlog != 1 {
		t.Fatalf("%d moves in progress and %d waiting, of an unconfirmed lease", s.Moves, s.Backlog)
	}
	l.settle()
	a.wantDepartures(leasehold.All)
}
