package demo

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// TestWhoIsToBlame for a loss.
func TestWhoIsToBlame(t *testing.T) {
	c := &cluster{}
	by := func(owner leasehold.OwnerID) bool { return c.byRestart(leasehold.Loss{Owner: owner}) }
	if by("a") {
		t.Error("nobody was restarted")
	}
	name := "a"
	c.restarting.Store(&name)
	if !by("a") || by("b") || by("") {
		t.Error("only a is restarted")
	}
	c.restarting.Store(nil)
	if by("a") || by("") {
		t.Error("nobody is restarted any more")
	}
	c.cfg.Rolling = true
	if !by("b") {
		t.Error("nothing but restarts can be to blame")
	}
}
