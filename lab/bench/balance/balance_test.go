package balance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/partition"
)

// small returns a shorter scenario with fewer owners and keys.
func small(s scenario) scenario {
	s.owners, s.load, s.change = s.owners/25, zipf(1e4), s.change/25
	s.periods = min(s.periods, s.from+8*minute)
	return s
}

// TestConclude: every scenario gives a table, deterministically.
func TestConclude(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var results [2]report.Result
			var steps []string
			for i := range results {
				trials, err := small(s).try(t.Context(), 2, func(text string) { steps = append(steps, text) })
				if err != nil {
					t.Fatal(err)
				}
				conclude(&results[i], s, trials)
			}
			if diff := cmp.Diff(results[0], results[1]); diff != "" {
				t.Errorf("the same seeds give different results:\n%s", diff)
			}
			if rows := len(results[0].Sections[0].Table.Rows); rows != len(contestants()) {
				t.Errorf("the table has %d rows", rows)
			}
			if want := map[bool]int{false: 4, true: 2}[s.same]; len(steps) != want || steps[0] != s.name+", seed 1" {
				t.Errorf("the steps are %q", steps)
			}
		})
	}
}

// TestCellText: an empty spread is omitted.
func TestCellText(t *testing.T) {
	if got := cellText(report.Summarise([]float64{1.001, 1.002}), 2); got != "1.00" {
		t.Errorf("got %q", got)
	}
	if got := cellText(report.Summarise([]float64{1, 2, 4}), 1); got != "2.0 (1.0 to 4.0)" {
		t.Errorf("got %q", got)
	}
}

func pool(n int) (members []partition.Member) {
	for i := range n {
		members = append(members, partition.Member{Owner: leasehold.OwnerID(fmt.Sprintf("owner-%03d", i)), Weight: 1})
	}
	return members
}

// TestLibraryIsBounded: no owner has more partitions than the factor allows, and an owner that
// rejoins gets its previous partitions.
func TestLibraryIsBounded(t *testing.T) {
	p := &library{partitions: 20 * perOwner}
	assign := func(owners int) partition.Assignment {
		a, err := partition.Apply(p, partition.Input{Members: pool(owners)})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	before := assign(20)
	counts := make(map[leasehold.OwnerID]int)
	for i := range p.partitions {
		counts[before.OwnerAt(p.start(i))]++
	}
	for owner, n := range counts {
		if n > perOwner*5/4 {
			t.Errorf("%s has %d partitions", owner, n)
		}
	}
	if slices.Equal(before, assign(19)) {
		t.Error("an owner left without a change")
	}
	if !slices.Equal(before, assign(20)) {
		t.Error("the assignment differs after an owner left and rejoined")
	}
}
