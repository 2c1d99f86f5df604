package demo

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// TestLossesDuringRestarts: a loss is attributed to a restart only while its owner restarts. In a
// rolling restart every loss is.
func TestLossesDuringRestarts(t *testing.T) {
	c := &cluster{}
	by := func(owner leasehold.OwnerID) bool { return c.byRestart(leasehold.Loss{Owner: owner}) }
	if by("a") {
		t.Error("a loss without a restart is attributed to one")
	}
	name := "a"
	c.restarting.Store(&name)
	if !by("a") || by("b") || by("") {
		t.Error("only losses of a belong to the restart")
	}
	c.restarting.Store(nil)
	if by("a") || by("") {
		t.Error("a loss after the restart is attributed to it")
	}
	c.cfg.Rolling = true
	if !by("b") {
		t.Error("a loss in a rolling restart is not attributed to it")
	}
}
