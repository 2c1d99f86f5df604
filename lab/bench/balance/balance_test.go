package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/policylab"
)

// small returns a shorter scenario with fewer owners and keys.
func small(s scenario) scenario {
	s.owners, s.load = s.owners/25, zipf(1e4)
	if s.name == hotPart || s.name == figurePart {
		s.periods = 8 * minute
	}
	for i := range s.changes {
		s.changes[i].Owners = max(-2, min(2, s.changes[i].Owners))
	}
	return s
}

// TestReport: every scenario gives tables and plots, deterministically.
func TestReport(t *testing.T) {
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
				if err := results[i].Store(t.TempDir()); err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(results[0].Sections, results[1].Sections); diff != "" {
				t.Errorf("the same seeds give different results:\n%s", diff)
			}
			for _, section := range results[0].Sections {
				if section.Table != nil && len(section.Table.Rows) != len(contestants()) {
					t.Errorf("a table has %d rows", len(section.Table.Rows))
				}
			}
			if len(steps) != 4 || steps[1] != s.name+", seed 2" {
				t.Errorf("the steps are %q", steps)
			}
		})
	}
}

// TestHeavyServersSaysHowMany: the panel's title has the numbers of heavy servers at first and at last.
func TestHeavyServersSaysHowMany(t *testing.T) {
	r := &policylab.Result{Policy: "p", Loads: [][]float32{{0.5, 0.6, 0.1}, {0.1, 0.41, 0.2}}}
	p := heavyServers(r, report.Paint(0))
	if want := "p: 2, then 1 above 40 %"; p.Title.Text != want {
		t.Errorf("got %q, want %q", p.Title.Text, want)
	}
	var image bytes.Buffer
	if err := report.WritePanels(&image, p); err != nil || image.Len() == 0 {
		t.Error(err)
	}
}

// TestSaid: an empty spread is omitted.
func TestSaid(t *testing.T) {
	if got := cellText(report.Summarise([]float64{1.001, 1.002}), 2); got != "1.00" {
		t.Errorf("got %q", got)
	}
	if got := cellText(report.Summarise([]float64{1, 2, 4}), 1); got != "2.0 (1.0 to 4.0)" {
		t.Errorf("got %q", got)
	}
}
