package chaos

import (
	"testing"

	"github.com/leasehold-dev/leasehold/lab/chaos/check"
)

// TestClocksBeyondTheBound: owners whose clocks are too slow for the leader's notice it and drop
// their leases, and whatever two of them believe meanwhile, the fence lets no older one pass.
func TestClocksBeyondTheBound(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.Faults, cfg.Seed, cfg.Slack, cfg.Beyond = 1, 1, slack, true
	cfg.Kinds = []string{"manager-clocks-beyond"}
	fencing := fenced(t, &cfg)
	r := start(t, cfg)
	for _, v := range r.Violations {
		t.Errorf("%v\nIt is in %s. To do it again: %s", v, r.Kept, r.Replay)
	}
	if r.ByKind["manager-clocks-beyond"] == 0 || r.Noticed == 0 {
		t.Errorf("nobody noticed %v", r.ByKind)
	}
	if fencing && r.Checked.Writes == 0 {
		t.Error("nothing was written to the database")
	}
	t.Logf("noticed %d times, excused %d", r.Noticed, r.Excused)
}

// TestExcuses: clocks are to blame for some things, and for some they are not.
func TestExcuses(t *testing.T) {
	found := []check.Violation{{Invariant: "I1", Times: 3}, {Invariant: "I9", Times: 1}, {Invariant: "I6", Times: 2}, {Invariant: "I5"}, {Invariant: "I2"}}
	r := &run{cfg: Config{Beyond: true}}
	left := r.excuse(append([]check.Violation(nil), found...))
	if len(left) != 3 || left[0].Invariant != "I9" || r.report.Excused != 5 {
		t.Errorf("%v is left, and %d are excused", left, r.report.Excused)
	}
	if left := (&run{}).excuse(found); len(left) != len(found) {
		t.Errorf("%v is left where clocks keep the bound", left)
	}
}
