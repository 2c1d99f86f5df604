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
		{time.Second, third, "x", true},    // to another owner
		{2 * time.Second, one, "y", false}, // changed text, too soon
		{11 * time.Second, one, "y", true},
		{12 * time.Second, one, "x", false},
		{12 * time.Second, other, "y", false}, // of another range
		{22 * time.Second, one, "y", false},   // as logged
		{10*time.Minute + 2*time.Second, other, "z", true},
		{10*time.Minute + 11*time.Second, one, "y", true},
		{10*time.Minute + 12*time.Second, one, "y", false},
	} {
		if got := r.shouldLog(mono.Instant(step.at), step.topic, step.text); got != step.want {
			t.Errorf("after %v, %q is logged: %t, want %t", step.at, step.text, got, step.want)
		}
	}
	now := mono.Instant(11 * time.Minute)
	if got := r.newest(now, one, time.Minute); got != "y" {
		t.Errorf("newest of the last minute: %q, want y", got)
	}
	if got := r.newest(now, one, time.Second); got != "" {
		t.Errorf("newest of the last second: %q, want none", got)
	}
	if got := r.newest(now, topic{"other", "", machine.NotePolicyRefused, ""}, time.Hour); got != "" {
		t.Errorf("newest of another topic: %q, want none", got)
	}
}

func TestRepeatsAreBounded(t *testing.T) {
	var r repeats
	for i := range 3 * maxTopics {
		r.shouldLog(0, topic{"pool", leasehold.OwnerID(fmt.Sprint(i)), machine.NoteMoveFailed, "b"}, "")
		if len(r.byTopic) > maxTopics {
			t.Fatalf("%d recorded topics, want at most %d", len(r.byTopic), maxTopics)
		}
	}
}
