package lookup

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An asker decides which manager hears a question. The machine leaves that
// open until it has an answer: then it goes on asking the one that gave it.
//
// One manager is asked at a time, because each that is asked may send the whole
// table. If it says that it cannot answer, or cannot be reached, the question
// goes to the next one at once, to each of them once; if it says nothing, the
// machine asks again after a while. If it answers, but knows itself only what
// was long ago, as a standby does that has lost the leader, the next question
// goes to another. It may be used from many goroutines at once.
type asker struct {
	managers []string      // in an order of our own, so that lookups spread
	patience time.Duration // how old the knowledge of who is asked again may be
	send     func(to string, question *leaseholdv1.FollowRequest)

	mu       sync.Mutex
	at       int // whom of managers to ask next
	question *leaseholdv1.FollowRequest
	asked    string // who was asked it last
	left     int    // how many others may still be
	dated    string // who answered last, if it knew only what was long ago
}

func newAsker(managers []string, patience time.Duration, send func(string, *leaseholdv1.FollowRequest)) *asker {
	a := &asker{managers: slices.Clone(managers), patience: patience, send: send}
	rand.Shuffle(len(a.managers), func(i, j int) { a.managers[i], a.managers[j] = a.managers[j], a.managers[i] }) //nolint:gosec // to spread load
	return a
}

// ask puts a question to a manager, or to the next one if to is empty.
func (a *asker) ask(to string, question *leaseholdv1.FollowRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.question, a.left = question, len(a.managers)
	if to == "" || to == a.dated {
		to = a.next()
	}
	a.pass(to)
}

// answered hears what a manager says: if it is the answer, there is nothing to
// pass on any more.
func (a *asker) answered(reply *protocol.LookupReply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.question == nil || a.question.GetSeq() != uint64(reply.Echo) {
		return
	}
	a.question, a.dated = nil, ""
	if reply.Age > a.patience {
		a.dated = string(reply.Leader)
	}
}

// failed passes the question on, if it was that manager's to answer and there
// is another to be asked. It reports whether the question is still under way.
func (a *asker) failed(from string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.question == nil {
		return false
	}
	if a.asked != from {
		return true
	}
	if a.left == 0 {
		return false
	}
	a.pass(a.next())
	return true
}

func (a *asker) next() string {
	to := a.managers[a.at]
	a.at = (a.at + 1) % len(a.managers)
	a.left--
	return to
}

func (a *asker) pass(to string) {
	a.asked = to
	a.send(to, a.question)
}

// sayings is what each manager last said instead of a table, for the error
// that says why there is none. It may be used from many goroutines at once.
type sayings struct {
	managers []string

	mu   sync.Mutex
	said map[string]string // bounded: see note
}

func newSayings(managers []string) *sayings {
	return &sayings{managers: managers, said: make(map[string]string)}
}

// note keeps what a manager said, and reports whether that is news. Of those that
// are not in the list, it keeps a few.
func (s *sayings) note(from, what string) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.said[from]; known || len(s.said) < 2*maxManagers || slices.Contains(s.managers, from) {
		news = s.said[from] != what
		s.said[from] = what
	}
	return news
}

// silent reports whether a manager has not said anything yet.
func (s *sayings) silent(from string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, said := s.said[from]
	return !said
}

// String lists the managers in the order of the configuration, then the others.
func (s *sayings) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, addr := range s.managers {
		what, ok := s.said[addr]
		if !ok {
			what = "no answer"
		}
		lines = append(lines, fmt.Sprintf("%s: %s", addr, what))
	}
	for addr, what := range s.said {
		if !slices.Contains(s.managers, addr) {
			lines = append(lines, fmt.Sprintf("%s: %s", addr, what))
		}
	}
	slices.Sort(lines[len(s.managers):])
	return strings.Join(lines, "; ")
}

// noSuchNamespace is what a caller can do about a namespace that is not there.
func noSuchNamespace(n leasehold.Namespace, manager string) error {
	return leasehold.Errorf(opOpen, leasehold.NotFound, string(n),
		"manager %s says that there is no such namespace: create it with `leasehold namespace create %s`, or mend the name",
		manager, n)
}
