package manager

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

func TestRepeats(t *testing.T) {
	var r repeats
	one, other := topic{"pool", "", machine.NotePolicyRefused, ""}, topic{"pool", "a", machine.NoteMoveFailed, "b"}
	third := topic{"pool", "a", machine.NoteMoveFailed, "c"}
	for _, step := range []struct {
		at    time.Duration
		topic topic
		text  string
		want  bool
	}{
		{0, one, "x", true},
		{time.Second, one, "x", false},
		{time.Second, other, "x", true},
		{time.Second, third, "x", true},    // to somebody else
		{2 * time.Second, one, "y", false}, // too soon for other words
		{11 * time.Second, one, "y", true},
		{12 * time.Second, one, "x", false},
		{12 * time.Second, other, "y", false}, // of another range
		{22 * time.Second, one, "y", false},   // as it was said
		{10*time.Minute + 2*time.Second, other, "z", true},
		{10*time.Minute + 11*time.Second, one, "y", true},
		{10*time.Minute + 12*time.Second, one, "y", false},
	} {
		if got := r.shouldLog(mono.Instant(step.at), step.topic, step.text); got != step.want {
			t.Errorf("after %v, %q is news: %t, want %t", step.at, step.text, got, step.want)
		}
	}
	now := mono.Instant(11 * time.Minute)
	if got := r.newest(now, one, time.Minute); got != "y" {
		t.Errorf("a minute ago %q was found, want y", got)
	}
	if got := r.newest(now, one, time.Second); got != "" {
		t.Errorf("a second ago %q was found, want nothing", got)
	}
	if got := r.newest(now, topic{"other", "", machine.NotePolicyRefused, ""}, time.Hour); got != "" {
		t.Errorf("elsewhere %q was found, want nothing", got)
	}
}

func TestRepeatsAreBounded(t *testing.T) {
	var r repeats
	for i := range 3 * maxTopics {
		r.shouldLog(0, topic{"pool", leasehold.OwnerID(fmt.Sprint(i)), machine.NoteMoveFailed, "b"}, "")
		if len(r.byTopic) > maxTopics {
			t.Fatalf("%d topics are remembered, want at most %d", len(r.byTopic), maxTopics)
		}
	}
}
