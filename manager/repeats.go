package manager

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A persistent failure is noted at every retry: the machine calls a failing policy, and retries
// a failing move, every few seconds. To keep the log readable, a warning is logged when it is new,
// when its text changed (at most every minChangedInterval), and otherwise every repeatInterval.
// Failed moves between the same two owners differ only in the range, so they count as the same
// text.
const (
	minChangedInterval = 10 * time.Second
	repeatInterval     = 10 * time.Minute
)

// isPersistent reports whether a note repeats until an operator acts.
func isPersistent(what machine.Notable) bool {
	switch what {
	case machine.NotePolicyRefused, machine.NoteMoveFailed, machine.NoteMoveTimeout, machine.NoteDeathRefused, machine.NoteLate:
		return true
	}
	return false
}

// maxTopics bounds the recorded topics. Beyond it all records are deleted, which costs a few
// repeated lines.
const maxTopics = 4096

// A topic is the subject of a warning.
type topic struct {
	namespace leasehold.Namespace
	owner     leasehold.OwnerID
	what      machine.Notable
	to        leasehold.OwnerID // of a move
}

func topicOf(ns leasehold.Namespace, n machine.Note) topic { return topic{ns, n.Owner, n.What, n.To} }

// repeats limits repeated warnings. The zero value is empty.
type repeats struct{ byTopic map[topic]*warning }

type warning struct {
	text       string // the newest
	last       mono.Instant
	loggedText string
	logged     mono.Instant
}

// shouldLog records a warning, and reports whether to log it.
func (r *repeats) shouldLog(now mono.Instant, t topic, text string) bool {
	w := r.byTopic[t]
	if w == nil {
		if r.byTopic == nil || len(r.byTopic) >= maxTopics {
			r.byTopic = make(map[topic]*warning)
		}
		r.byTopic[t] = &warning{text: text, loggedText: text, logged: now, last: now}
		return true
	}
	w.text, w.last = text, now
	silent := now.Sub(w.logged)
	same := text == w.loggedText || t.to != ""
	if silent < repeatInterval && (same || silent < minChangedInterval) {
		return false
	}
	w.logged, w.loggedText = now, text
	return true
}

// newest returns the newest warning on a topic if it is at most maxAge old, or "".
func (r *repeats) newest(now mono.Instant, t topic, maxAge time.Duration) string {
	if w := r.byTopic[t]; w != nil && now.Sub(w.last) <= maxAge {
		return w.text
	}
	return ""
}
