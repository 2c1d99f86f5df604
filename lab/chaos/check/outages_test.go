package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
)

// reported is a loss of all keys that the caller receives.
func reported(at oracle.Time, g leasehold.Generation, cause leasehold.Cause, lsn leasehold.LSN) script {
	return event(history.Event{At: at, Loss: &history.Loss{Generation: g, Cause: cause, LSN: lsn}})
}

// TestOutages: an outage begins at 100, when session 1 holds the key under generation 1 and callers
// have LSN 7.
func TestOutages(t *testing.T) {
	const (
		kept       = 1
		reassigned = 2
	)
	before := []script{opened(1), held(1, 1, 10, 120), event(history.Event{At: 20, Table: &history.Table{LSN: 7}})}
	for _, test := range []struct {
		name  string
		story []script
		want  string // the violation; empty: none
		count int    // what is counted; 0: nothing
	}{
		{"the lease continues", []script{held(1, 1, 400, 500)}, "", kept},
		{"contact is lost, reported conservatively", []script{reported(150, 0, leasehold.CauseContact, 7), held(1, 1, 400, 500)}, "", kept},
		{"contact is lost", []script{losesContact(150), held(1, 1, 400, 500), restored(401)}, "", kept},
		{"a loss from before is reported late", []script{reported(110, 0, leasehold.CauseExpired, 7), held(1, 1, 400, 500)}, "", kept},
		{"the owner has another lease", []script{held(1, 2, 400, 500)}, "I11: an outage ended a lease (1 times): managers-kill, begun at 100: key ", 0},
		{"the owner has another lease after a recall", []script{reported(400, 1, leasehold.CauseReleased, 8), held(1, 2, 410, 500)}, "I11: an outage ended a lease", 0},
		{"the lease expired, and another owner has the key", []script{reported(400, 1, leasehold.CauseExpired, 8), held(2, 2, 410, 500)}, "I11: an outage ended a lease", 0},
		{"no caller received why another owner has the key", []script{held(2, 2, 410, 500)}, "I11: an outage ended a lease", 0},
		{"the leader gave the key to another owner", []script{held(1, 1, 400, 405), reported(407, 1, leasehold.CauseReleased, 8), held(2, 2, 410, 500)}, "", reassigned},
		{"an earlier lease was recalled", []script{reported(99, 1, leasehold.CauseReleased, 7), held(2, 2, 410, 500)}, "I11: an outage ended a lease", 0},
		{"the lease came back after another owner's", []script{held(2, 2, 200, 300), held(1, 1, 400, 500)}, "I11: an outage ended a lease", 0},
		{"a caller receives a false loss", []script{held(1, 1, 400, 500), reported(401, 0, leasehold.CauseExpired, 8)}, "I11: a loss was reported after an outage in which nothing was lost", kept},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := New([]leasehold.Key{key}, stale, 0)
			c := b.Caller("c1")
			for _, do := range before {
				do(b, c)
			}
			o := b.Outage("managers-kill", 100)
			for _, do := range test.story {
				do(b, c)
			}
			b.JudgeOutage(o)
			if test.want == "" && len(b.found) > 0 ||
				test.want != "" && !slices.ContainsFunc(b.found, func(v Violation) bool { return strings.HasPrefix(v.String(), test.want) }) {
				t.Errorf("found %q, want %q", b.found, test.want)
			}
			if b.n.Outages != 1 || (b.n.Kept == 1) != (test.count == kept) || (b.n.Reassigned == 1) != (test.count == reassigned) {
				t.Errorf("counted %+v", b.n)
			}
		})
	}
}

// TestOutageWithoutAHolder: a key that no session held when the outage began is not judged. An outage in
// which most keys have no holder is a violation.
func TestOutageWithoutAHolder(t *testing.T) {
	b := New([]leasehold.Key{key}, stale, 0)
	held(1, 1, 10, 99)(b, nil)
	o := b.Outage("managers-cut", 100)
	held(2, 2, 101, 200)(b, nil)
	b.JudgeOutage(o)
	if len(b.found) != 1 || !strings.Contains(b.found[0].String(), "0 of 1 keys were held") || b.n.Kept != 0 {
		t.Errorf("found %v, counted %+v", b.found, b.n)
	}
}

// TestQuiet: a cluster is quiet if no key was granted or resumed for a while, and every caller has contact.
func TestQuiet(t *testing.T) {
	for _, test := range []struct {
		name  string
		story []script
		want  bool
	}{
		{"at rest", []script{opened(1), held(1, 1, 10, 500)}, true},
		{"a grant", []script{held(1, 1, 101, 500)}, false},
		{"a lease is resumed", []script{held(1, 1, 10, 20), held(1, 1, 30+handover, 40+handover)}, false},
		{"no contact", []script{opened(1), losesContact(50)}, false},
		{"contact again", []script{opened(1), losesContact(50), restored(60)}, true},
		{"a caller has ended", []script{opened(1), losesContact(50), func(_ *Book, c *Caller) { c.Gone() }}, true},
	} {
		b := New([]leasehold.Key{key}, stale, 0)
		c := b.Caller("c1")
		for _, do := range test.story {
			do(b, c)
		}
		if got := b.Quiet(100); got != test.want {
			t.Errorf("%s: quiet is %t", test.name, got)
		}
	}
}
