package main

import (
	"testing"
	"time"
)

// TestBudget: all benchmarks take at most half an hour, those of -quick less than three minutes.
func TestBudget(t *testing.T) {
	var all, quick int
	for i, b := range benchmarks() {
		all, quick = all+b.Seconds, quick+b.QuickSeconds
		if b.Number != i+1 || b.Rounds < 1 || b.Quick < 1 || b.Seconds < 1 || b.QuickSeconds < 1 {
			t.Errorf("%s, at %d: %+v", b.Name, i+1, b)
		}
	}
	if all := time.Duration(all) * time.Second; all > 30*time.Minute {
		t.Errorf("all take %v", all)
	}
	if quick := time.Duration(quick) * time.Second; quick > 150*time.Second {
		t.Errorf("-quick takes %v", quick)
	}
}

// TestRoles: no two benchmarks use a name for different processes.
func TestRoles(t *testing.T) {
	want := []string{"clients", "flease-member", "library", "listeners", "timed-manager"}
	all := roles()
	for _, role := range want {
		if all[role] == nil {
			t.Errorf("no role %s", role)
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d roles, want %d", len(all), len(want))
	}
}
