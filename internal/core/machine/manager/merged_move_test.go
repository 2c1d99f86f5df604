package manager_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
)

// A move waits for a slot of its target, and meanwhile the source loses a part of the range. The rest is still
// moved.
func TestRestOfAWaitingMove(t *testing.T) {
	l, p := newMovingLeader(t, "aacc", func(c *manager.Config) { c.Moves = 1 })
	a, c, b := l.mover("a"), l.mover("c"), l.mover("b")
	p.give("bbbb")
	l.replan()
	first, waiting, lost, rest := a, c, cell(2, 3), cell(3, 0)
	if len(a.departures()) == 0 {
		first, waiting, lost, rest = c, a, cell(0, 1), cell(1, 2)
	}
	if len(first.departures()) != 1 || len(waiting.departures()) != 0 {
		t.Fatalf("%d and %d moves have started", len(first.departures()), len(waiting.departures()))
	}
	waiting.releases(lost)
	waiting.send()
	l.settle()
	first.completes(first.departures()[0])
	l.settle()
	b.send()
	l.settle()
	l.advance(0)
	l.settle()
	waiting.send()
	l.settle()
	waiting.wantDepartures(rest)
}
