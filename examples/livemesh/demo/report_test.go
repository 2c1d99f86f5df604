package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
)

func TestReport(t *testing.T) {
	report := Report{
		Seed: 7, Blows: []string{"x was killed"},
		Queues: promise.Tally{Due: 5, Lost: 2}, Topics: promise.Tally{Due: 7}, Presence: Presence{Users: 9, Absent: 1},
	}
	report.setLearned([]time.Duration{time.Second, 2 * time.Millisecond, time.Millisecond})
	text := report.String()
	for _, want := range []string{
		"\nfaults     1 (--seed 7)", "3 addresses: half of them within 2 ms, the longest took 1000 ms", "5 messages were acknowledged, 2 of them lost, all reported",
		"7 copies were due, and none", "and 8 of 9 are there",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s, want %q", text, want)
		}
	}
	if report.Presence.err() == nil {
		t.Error("an absent user is no error")
	}
}
