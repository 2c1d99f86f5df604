package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/partition"
)

func gathering(c *manager.Config) { c.Gather = time.Second }

// The first owner gets everything at once: its keys have no owner meanwhile.
func TestGatherDoesNotDelayTheFirst(t *testing.T) {
	l := newPaperLeader(t, gathering)
	l.join("a")
	l.wantHolder(0, "a", "at once")
}

// Who joins after that waits a moment for others, and then all get their part.
func TestGatherWaitsForOthers(t *testing.T) {
	l := newPaperLeader(t, gathering)
	l.join("a")
	l.join("b")
	l.advance(900 * time.Millisecond)
	l.join("c") // does not start the time again
	l.wantHolder(middle, "a", "while others may join")
	commits := len(l.log)
	l.advance(100 * time.Millisecond)
	l.settle()
	l.wantHolder(0, "a", "after that")
	l.wantHolder(middle, "b", "after that")
	l.wantHolder(^middle+middle, "c", "after that")
	if got := len(l.log) - commits; got > 4 {
		t.Errorf("it took %d changes to give something to two owners", got)
	}
}

// When an owner is gone nobody waits: its keys have no owner.
func TestGatherEndsWhenAnOwnerIsGone(t *testing.T) {
	l := newPaperLeader(t, gathering)
	a := l.join("a")
	l.join("b")
	l.wantHolder(0, "a", "while others may join")
	a.leave()
	l.settle()
	l.wantHolder(0, "b", "at once")
}

// withSlots has three owners, each with a part of its own.
func withSlots(c *manager.Config) {
	gathering(c)
	c.Policy = partition.Static{Slots: partition.Assignment{{Start: 0, Owner: "a"}, {Start: middle, Owner: "b"}, {Start: middle + middle/2, Owner: "c"}}}
}

// Who comes to keys that nobody has gets them at once, whoever else may join.
func TestGatherDoesNotDelayWhoseKeysNobodyHas(t *testing.T) {
	l := newPaperLeader(t, withSlots)
	l.join("a")
	l.advance(time.Second)
	l.join("b")
	l.wantHolder(middle, "b", "at once")
	l.wantHolder(^middle+middle, "", "whose owner is away")
}

// Many who come to keys that nobody has are not as many plans.
func TestGatherIsShortWhereKeysAreNobodys(t *testing.T) {
	l := newPaperLeader(t, withSlots)
	l.join("a")
	l.advance(10 * time.Millisecond)
	l.join("b")
	l.join("c")
	l.wantHolder(middle, "", "while others may join")
	commits := len(l.log)
	l.advance(time.Second / 16)
	l.wantHolder(middle, "b", "soon")
	l.wantHolder(^middle+middle, "c", "with it")
	if got := len(l.log) - commits; got != 2 {
		t.Errorf("%d changes, want a grant to each", got)
	}
}
