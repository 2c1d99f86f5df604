package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/sim"
)

func TestReportEndingAndStatus(t *testing.T) {
	violation := []sim.Failure{{Seed: 4, Violation: &sim.Violation{Invariant: "I1 exclusive"}}}
	for name, test := range map[string]struct {
		args        []string
		summary     sim.Summary
		interrupted bool
		ended       ending
		status      status
		verdict     string
	}{
		"green":                         {nil, sim.Summary{Seeds: 9}, false, completed, statusOK, "no violation in 9 worlds"},
		"interrupted too late":          {nil, sim.Summary{Seeds: 9}, true, completed, statusOK, "no violation in 9 worlds"},
		"violated":                      {nil, sim.Summary{Seeds: 9, Failures: violation}, false, completed, statusViolated, "1 violation in 9 worlds"},
		"stopped":                       {nil, sim.Summary{Seeds: 4, Failures: violation}, false, stopped, statusViolated, "1 violation in 4 worlds; stopped before the other 5"},
		"interrupted":                   {nil, sim.Summary{Seeds: 4}, true, interrupted, statusInterrupted, "no violation in 4 worlds; interrupted before the other 5"},
		"interrupted at once":           {nil, sim.Summary{}, true, interrupted, statusInterrupted, "no violation in 0 worlds; interrupted before the other 9"},
		"interrupted after a violation": {nil, sim.Summary{Seeds: 4, Failures: violation}, true, interrupted, statusViolated, "1 violation in 4 worlds; interrupted before the other 5"},
		"mutant survived":               {[]string{"--planted=bug"}, sim.Summary{Seeds: 9}, false, completed, statusSurvived, "no violation in 9 worlds"},
		"mutant found":                  {[]string{"--planted=bug"}, sim.Summary{Seeds: 4, Failures: violation}, false, stopped, statusViolated, "1 violation in 4 worlds; stopped before the other 5"},
		"mutant interrupted":            {[]string{"--planted=bug"}, sim.Summary{Seeds: 4}, true, interrupted, statusInterrupted, "no violation in 4 worlds; interrupted before the other 5"},
	} {
		_, o := parsed(t, append(test.args, "--seeds=9")...)
		r := o.report(&test.summary, test.interrupted)
		if r.Ended != test.ended || r.status() != test.status {
			t.Errorf("%s: got %s, %d, want %s, %d", name, r.Ended, r.status(), test.ended, test.status)
		}
		text := plain(r.text(usualWidth))
		if !strings.HasSuffix(text, "\n\n"+test.verdict+"\n") {
			t.Errorf("%s: the last line is not %q:\n%s", name, test.verdict, text)
		}
	}
}

func TestReportIndentsWhatAMachineSaidWhenItCrashed(t *testing.T) {
	_, o := parsed(t, "--seeds=9")
	f := o.failure(4, &sim.Violation{Invariant: "crash", At: 1500 * time.Millisecond, Text: "index out of range\ngoroutine 1:\n\tmain.f()\n"})
	want := "VIOLATION  seed 4, crash, at 1.5s\n" +
		"  index out of range\n  goroutine 1:\n  \tmain.f()\n" +
		"  replay: go run ./cmd/leasehold sim --seed 4 --seeds 1 --trace\n\n"
	if got := plain(f.text()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestInOrder(t *testing.T) {
	got := []string{"one leader", "I10 isolation", "I2 generations", "I1 exclusive", "another"}
	slices.SortFunc(got, inOrder)
	want := []string{"I1 exclusive", "I2 generations", "I10 isolation", "another", "one leader"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
