package chaos

import (
	"testing"

	"github.com/leasehold-dev/leasehold/lab/chaos/check"
)

// TestClocksBeyondTheBound: owners with slower clocks than the bound allows detect it and drop their leases.
// Even with two owners of a key, the fence accepts no older token after a newer one.
func TestClocksBeyondTheBound(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.Faults, cfg.Seed, cfg.Slack, cfg.Beyond = 1, 1, slack, true
	cfg.Kinds = []string{"manager-clocks-beyond"}
	fencing := fenced(t, &cfg)
	r := start(t, cfg)
	for _, v := range r.Violations {
		t.Errorf("%v\nLogs are in %s. To repeat it: %s", v, r.Kept, r.Replay)
	}
	if r.ByKind["manager-clocks-beyond"] == 0 || r.Noticed == 0 {
		t.Errorf("no owner has detected its slow clock: %v", r.ByKind)
	}
	if fencing && r.Checked.Writes == 0 {
		t.Error("the database has no write")
	}
	t.Logf("slow clocks detected %d times, violations excused %d", r.Noticed, r.Excused)
}

// TestExcuses: with clocks beyond the bound some violations are excused, and some are not.
func TestExcuses(t *testing.T) {
	found := []check.Violation{{Invariant: "I1", Times: 3}, {Invariant: "I9", Times: 1}, {Invariant: "I6", Times: 2}, {Invariant: "I5"}, {Invariant: "I2"}}
	r := &run{cfg: Config{Beyond: true}}
	left := r.excuse(append([]check.Violation(nil), found...))
	if len(left) != 3 || left[0].Invariant != "I9" || r.report.Excused != 5 {
		t.Errorf("%v are not excused, and %d are", left, r.report.Excused)
	}
	if left := (&run{}).excuse(found); len(left) != len(found) {
		t.Errorf("only %v are not excused, with clocks within the bound", left)
	}
}
