package main

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

func TestSummarise(t *testing.T) {
	second := func(leases int) turn { return turn{leases, time.Second, time.Duration(leases) * time.Millisecond} }
	for name, c := range map[string]struct {
		turns []turn
		want  summary
	}{
		"none": {},
		"one":  {[]turn{second(7)}, summary{kit.Summary{Median: 7, Low: 7, High: 7, Turns: 1}, 1000}},
		"odd":  {[]turn{second(9), second(1), second(2)}, summary{kit.Summary{Median: 2, Low: 1, High: 9, Turns: 3}, 1000}},
		"even": {[]turn{second(9), second(1), second(2), second(4)}, summary{kit.Summary{Median: 3, Low: 1, High: 9, Turns: 4}, 1000}},
		// What counts is the rate and not how long a turn was.
		"lengths": {[]turn{{10, 2 * time.Second, 20}, {1, time.Second / 2, 4_000}, {8, time.Second, 8_000}}, summary{kit.Summary{Median: 5, Low: 2, High: 8, Turns: 3}, 1}},
		"empty":   {[]turn{{}}, summary{Summary: kit.Summary{Turns: 1}}},
	} {
		if diff := cmp.Diff(c.want, summarise(c.turns)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPairedChange(t *testing.T) {
	rates := func(all ...int) (turns []turn) {
		for _, r := range all {
			turns = append(turns, turn{Leases: r, Took: time.Second})
		}
		return turns
	}
	for name, c := range map[string]struct {
		before, after []turn
		want          float64
	}{
		"none":          {nil, rates(1), 0},
		"less":          {rates(100, 100, 100), rates(90, 80, 10), -0.2},
		"a slow minute": {rates(100, 10, 100), rates(95, 9, 96), -0.05},
		"from nothing":  {rates(0), rates(5), 0},
	} {
		if got := pairedChange(c.before, c.after); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestTogether(t *testing.T) {
	got := together([]answer{{Leases: 3, Begin: 1_000, End: 5_000, CPU: 7}, {Leases: 4, Begin: 900, End: 4_000, CPU: 1}})
	if diff := cmp.Diff(turn{7, 4_100, 8}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := together(nil); got != (turn{}) {
		t.Errorf("of nobody: %v", got)
	}
}

func TestLoadOf(t *testing.T) {
	var sum answer
	for _, a := range []answer{
		{Begin: 1e9, End: 2e9, Bytes: 100, Syncs: 10, CPU: 5e8},
		{Begin: 7e9, End: 10e9, Bytes: 300, Syncs: 10, CPU: 5e8},
	} {
		sum = addAnswers(sum, a)
	}
	if diff := cmp.Diff(load{BytesPerSecond: 100, SyncsPerSecond: 5, CPUs: 0.25}, loadOf(sum)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := loadOf(answer{}); got != (load{}) {
		t.Errorf("of nothing: %v", got)
	}
}
