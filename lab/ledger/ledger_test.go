package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run continues with seeds that no commit has used, with the kind on which the least time was spent.
func TestContinues(t *testing.T) {
	var l ledger
	a, b := kinds[0], kinds[1]
	for i, step := range []struct {
		commit string
		want   kind
		seed   uint64
		took   float64
	}{
		{"one", a, firstSeed, 5},
		{"one", b, firstSeed, 3},
		{"one", b, firstSeed + 10, 3},
		{"one", a, firstSeed + 10, 1},
		{"two", a, firstSeed + 20, 1}, // another commit, other seeds
		{"one", a, firstSeed + 30, 1}, // a gap in the seeds of this commit: another entry
	} {
		k := l.next(step.commit, []kind{a, b})
		seed := l.nextSeed(k.name)
		if k.name != step.want.name || seed != step.seed {
			t.Fatalf("step %d: %s from seed %d on, want %s from %d on", i, k.name, seed, step.want.name, step.seed)
		}
		l.add(step.commit, k.name, seed, result{Seeds: 10, Seconds: step.took, Hours: 2, Faults: map[string]int{"loss": 4, "delay": 1}})
	}
	if len(l) != 4 || l[0].Seeds != 20 || l[1].Seeds != 20 || l[0].Faults != 10 || l[0].Hours != 4 {
		t.Errorf("entries: %+v", l)
	}
	page := l.page()
	for _, want := range []string{"| all |  | 60 | 12 | 30 | 0 |", "| `one` | " + l[0].Date + " | 50 |", "| `two` | " + l[0].Date + " | 10 |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q:\n%s", want, page)
		}
	}
}

// The page in the repository is that of the ledger.
func TestPageIsCurrent(t *testing.T) {
	l, err := read(filepath.Join("..", "..", ledgerFile))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", pageFile))
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != l.page() {
		t.Errorf("%s is out of date: go run ./lab/ledger -page", pageFile)
	}
	if len(l) == 0 {
		t.Error("the ledger is empty")
	}
}

func TestUnknownKind(t *testing.T) {
	if _, err := choose("outages"); err == nil || !strings.Contains(err.Error(), "diskless outage") {
		t.Errorf("the error does not list the kinds: %v", err)
	}
}

// Blocks are run by the real program; one in which leases are off has violations.
func TestBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the simulators")
	}
	programs, err := build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer programs.remove()
	for _, c := range []struct {
		kind
		violated bool
	}{
		{kind{flags: "sim --faults default,outage=8", seeds: 5}, false},
		{kind{flags: "sim --leases-off", seeds: 20}, true},
		{kind{seeds: 3}, false},
	} {
		r, err := c.run(t.Context(), programs, firstSeed)
		if err != nil || r.Violations > 0 != c.violated || r.Seeds == 0 || r.Hours == 0 || len(r.Faults) == 0 {
			t.Errorf("%s: %+v, %v", c.flags, r, err)
		}
	}
	wrong := kind{flags: "sim --faults nothing-of-the-kind", seeds: 1}
	if _, err := wrong.run(t.Context(), programs, firstSeed); err == nil {
		t.Error("a block that was not run has a result")
	}
}
