package manager

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// What does not go away is found again and again: a policy that fails is asked
// every few seconds, and an owner whose state cannot be moved is tried as often.
// A log that says so every time hides everything else. So a warning is said when
// it is new or has another text, the latter not too often, and then again after a
// while, in case nobody has read it. Of two owners between which state cannot be
// moved one range is as good as another: they differ in text with each attempt,
// and are said once.
const (
	sayOthersAfter = 10 * time.Second
	sayAgainAfter  = 10 * time.Minute
)

// lasts reports whether a note is found again and again until somebody does
// something about it.
func lasts(what machine.Notable) bool {
	return what == machine.NotePolicyRefused || what == machine.NoteMoveFailed || what == machine.NoteMoveTimeout
}

// maxTopics bounds what is remembered. When there is more, all is forgotten,
// which costs a few lines.
const maxTopics = 4096

// A topic is what a warning is about.
type topic struct {
	namespace leasehold.Namespace
	owner     leasehold.OwnerID
	what      machine.Notable
	to        leasehold.OwnerID // of a move
}

func topicOf(ns leasehold.Namespace, n machine.Note) topic { return topic{ns, n.Owner, n.What, n.To} }

// repeats remembers what has been said. The zero repeats has heard nothing.
type repeats struct{ of map[topic]*said }

type said struct {
	text   string       // as it was last
	at     mono.Instant // when it was last said
	spoken string       // what was said then
	last   mono.Instant // when it was last found
}

// news reports whether a warning is to be said.
func (r *repeats) news(now mono.Instant, t topic, text string) bool {
	before := r.of[t]
	if before == nil {
		if r.of == nil || len(r.of) >= maxTopics {
			r.of = make(map[topic]*said)
		}
		r.of[t] = &said{text: text, spoken: text, at: now, last: now}
		return true
	}
	before.text, before.last = text, now
	silent := now.Sub(before.at)
	same := text == before.spoken || t.to != ""
	if silent < sayAgainAfter && (same || silent < sayOthersAfter) {
		return false
	}
	before.at, before.spoken = now, text
	return true
}

// since returns what was last found, if that is not longer ago than ago; else "".
func (r *repeats) since(now mono.Instant, t topic, ago time.Duration) string {
	if found := r.of[t]; found != nil && now.Sub(found.last) <= ago {
		return found.text
	}
	return ""
}
