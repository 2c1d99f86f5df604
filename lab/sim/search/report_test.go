package search

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
	"github.com/leasehold-dev/leasehold/server/console"
)

func TestReportEndingAndStatus(t *testing.T) {
	violation := []engine.Failure{{Seed: 4, Violation: &engine.Violation{Invariant: "I1 exclusive"}}}
	for name, test := range map[string]struct {
		args        []string
		summary     engine.Summary
		interrupted bool
		ended       ending
		outcome     Outcome
		verdict     string
	}{
		"green":                         {nil, engine.Summary{Seeds: 9}, false, completed, Passed, "no violation in 9 worlds"},
		"interrupted too late":          {nil, engine.Summary{Seeds: 9}, true, completed, Passed, "no violation in 9 worlds"},
		"violated":                      {nil, engine.Summary{Seeds: 9, Failures: violation}, false, completed, Violated, "1 violation in 9 worlds"},
		"stopped":                       {nil, engine.Summary{Seeds: 4, Failures: violation}, false, stopped, Violated, "1 violation in 4 worlds; stopped before the other 5"},
		"interrupted":                   {nil, engine.Summary{Seeds: 4}, true, interrupted, Interrupted, "no violation in 4 worlds; interrupted before the other 5"},
		"interrupted at once":           {nil, engine.Summary{}, true, interrupted, Interrupted, "no violation in 0 worlds; interrupted before the other 9"},
		"interrupted after a violation": {nil, engine.Summary{Seeds: 4, Failures: violation}, true, interrupted, Violated, "1 violation in 4 worlds; interrupted before the other 5"},
		"mutant survived":               {[]string{"--planted=bug"}, engine.Summary{Seeds: 9}, false, completed, Survived, "no violation in 9 worlds"},
		"mutant found":                  {[]string{"--planted=bug"}, engine.Summary{Seeds: 4, Failures: violation}, false, stopped, Violated, "1 violation in 4 worlds; stopped before the other 5"},
		"mutant interrupted":            {[]string{"--planted=bug"}, engine.Summary{Seeds: 4}, true, interrupted, Interrupted, "no violation in 4 worlds; interrupted before the other 5"},
	} {
		o := parsed(t, append(test.args, "--seeds=9")...)
		r := o.report(&test.summary, test.interrupted)
		if got := o.outcome(r.Failed > 0, r.Ended == interrupted); r.Ended != test.ended || got != test.outcome {
			t.Errorf("%s: got %s, %d, want %s, %d", name, r.Ended, got, test.ended, test.outcome)
		}
		text := plain(r.text(console.UsualWidth))
		if !strings.HasSuffix(text, "\n\n"+test.verdict+"\n") {
			t.Errorf("%s: the last line is not %q:\n%s", name, test.verdict, text)
		}
	}
}

func TestReportIndentsTheStackOfACrash(t *testing.T) {
	o := parsed(t, "--seeds=9")
	f := o.failure(4, &engine.Violation{Invariant: "crash", At: 1500 * time.Millisecond, Text: "index out of range\ngoroutine 1:\n\tmain.f()\n"})
	want := "VIOLATION  seed 4, crash, at 1.5s\n" +
		"  index out of range\n  goroutine 1:\n  \tmain.f()\n" +
		"  replay: go run ./cmd/leasehold-lab sim --seed 4 --seeds 1 --trace\n\n"
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
