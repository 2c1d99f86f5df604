package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/partition"
)

func gathering(c *manager.Config) { c.Gather = time.Second }

// The first owner gets everything at once, because the keys have no owner.
func TestGatherDoesNotDelayTheFirst(t *testing.T) {
	l := newPaperLeader(t, gathering)
	l.join("a")
	l.wantHolder(0, "a", "at once")
}

// After a later join the leader waits for others, and then all get their part.
func TestGatherWaitsForOthers(t *testing.T) {
	l := newPaperLeader(t, gathering)
	l.join("a")
	l.join("b")
	l.advance(900 * time.Millisecond)
	l.join("c") // does not restart the delay
	l.wantHolder(middle, "a", "while others may join")
	commits := len(l.log)
	l.advance(100 * time.Millisecond)
	l.settle()
	l.wantHolder(0, "a", "after that")
	l.wantHolder(middle, "b", "after that")
	l.wantHolder(^middle+middle, "c", "after that")
	if got := len(l.log) - commits; got > 4 {
		t.Errorf("%d changes for grants to two owners", got)
	}
}

// When an owner is gone there is no delay, because its keys have no owner.
func TestGatherEndsWhenAnOwnerIsGone(t *testing.T) {
	l := newPaperLeader(t, gathering)
	a := l.join("a")
	l.join("b")
	l.wantHolder(0, "a", "while others may join")
	a.leave()
	l.settle()
	l.wantHolder(0, "b", "at once")
}

// withSlots assigns a fixed range to each of three owners.
func withSlots(c *manager.Config) {
	gathering(c)
	c.Policy = partition.Static{Slots: partition.Assignment{{Start: 0, Owner: "a"}, {Start: middle, Owner: "b"}, {Start: middle + middle/2, Owner: "c"}}}
}

// An owner that joins gets keys without an owner at once.
func TestGatherDoesNotDelayGrantsOfUnownedKeys(t *testing.T) {
	l := newPaperLeader(t, withSlots)
	l.join("a")
	l.advance(time.Second)
	l.join("b")
	l.wantHolder(middle, "b", "at once")
	l.wantHolder(^middle+middle, "", "whose owner is away")
}

// Many owners that join while keys have no owner do not cause as many plans.
func TestGatherIsShortWhileKeysAreUnowned(t *testing.T) {
	l := newPaperLeader(t, withSlots)
	l.join("a")
	l.advance(10 * time.Millisecond)
	l.join("b")
	l.join("c")
	l.wantHolder(middle, "", "while others may join")
	commits := len(l.log)
	l.advance(time.Second / 16)
	l.wantHolder(middle, "b", "soon")
	l.wantHolder(^middle+middle, "c", "with the last join")
	if got := len(l.log) - commits; got != 2 {
		t.Errorf("%d changes, want a grant to each", got)
	}
}
