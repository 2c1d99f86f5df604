package lookup

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An asker decides which manager hears a question: the one that answered the
// last. The machine names whoever spoke last, or nobody if there was no answer.
//
// One manager is asked at a time, because each that is asked may send the whole
// table. If it says that it cannot answer, or cannot be reached, the question
// goes to the next one at once, to each of them once; if it says nothing, the
// machine asks again after a while, and the next one hears that. If it answers,
// but knows itself only what was long ago, as a standby does that has lost the
// leader, the question goes on to the next one, too; if all know no more than
// that, each further question goes to another, one at a time.
//
// Whoever answers is left after a while. A leader has owners to attend to, and
// its standbys tell us the same: it is left after a few answers, and is the last
// to be asked by those who look for somebody. A standby is left after an hour or
// so, for another one, so that lookups spread again over those that were
// restarted. To leave is to try another: if that has no good answer who had one
// is asked next.
//
// It may be used from many goroutines at once.
type asker struct {
	managers []string      // in an order of our own, so that lookups spread
	patience time.Duration // how old the knowledge of who is asked again may be
	send     func(to string, question *leaseholdv1.FollowRequest)

	mu       sync.Mutex
	question *leaseholdv1.FollowRequest // nil once it was answered
	asked    string                     // who was asked it last
	rest     []string                   // who is asked it next, if that one does not answer
	stopgap  string                     // who has answered it, and knew only what was long ago
	turn     int                        // whose turn it is among managers
	leader   string                     // who last said that it leads

	answerer string // who answered the last question
	led      bool   // and whether it led
	dated    bool   // it knew only what was long ago
	leaving  bool   // the next question goes to another
	stay     int    // how many more of its answers we take
	returns  int    // how often we have left a leader and found nobody better
}

// How many answers are taken: the first time of a leader, so that not all lookups
// leave a new one at once; then of a leader for which there was no other, the
// more the more often, since each attempt costs us the wait for who is silent; and
// of a standby.
const (
	firstStay   = 8
	maxReturns  = 4
	standbyStay = 720
)

func newAsker(managers []string, patience time.Duration, send func(string, *leaseholdv1.FollowRequest)) *asker {
	a := &asker{managers: slices.Clone(managers), patience: patience, send: send}
	rand.Shuffle(len(a.managers), func(i, j int) { a.managers[i], a.managers[j] = a.managers[j], a.managers[i] }) //nolint:gosec // to spread load
	return a
}

// ask puts a question to a manager, or to whose turn it is if to is empty.
func (a *asker) ask(to string, question *leaseholdv1.FollowRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answered := a.question == nil
	if a.stopgap != "" { // there was no better answer
		answered, a.answerer, a.dated = true, a.stopgap, true
	}
	a.question, a.stopgap = question, ""
	switch {
	case to == "": // who was asked, if anybody was, is silent
		if answered || len(a.rest) == 0 {
			a.rest = a.round("")
			a.advance()
		}
		a.pass()
	case !answered: // somebody has pointed there
		a.rest = slices.Insert(a.round(to), 0, to)
		a.pass()
	case a.dated:
		a.rest = append(a.round(a.answerer), a.answerer)
		if i := slices.Index(a.rest, a.leader); i > 0 { // who should know more
			a.rest = slices.Insert(slices.Delete(a.rest, i, i+1), 0, a.leader)
		}
		a.advance()
		a.pass()
	case a.leaving:
		a.leaving = false
		a.rest = slices.Insert(a.round(a.answerer), 1, a.answerer)
		a.advance()
		a.pass()
	default: // whom we have left may have spoken since
		a.rest = slices.Insert(a.round(a.answerer), 0, a.answerer)
		a.pass()
	}
}

// answered hears what a manager says: if it is a good answer, or the last, there
// is nothing to pass on any more.
func (a *asker) answered(reply *protocol.LookupReply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.question == nil || a.question.GetSeq() != uint64(reply.Echo) {
		return
	}
	from, dated := string(reply.Leader), reply.Age > a.patience
	if reply.Leads {
		a.leader = from
	} else if a.leader == from {
		a.leader = ""
	}
	if dated && !a.dated && len(a.rest) > 0 {
		a.stopgap = from
		a.pass()
		return
	}
	if from != a.answerer || reply.Leads != a.led {
		if !reply.Leads && !dated {
			a.returns = 0
		}
		a.answerer, a.led = from, reply.Leads
		a.draw()
	}
	a.question, a.rest, a.stopgap, a.dated = nil, nil, "", dated
	a.stay--
	a.leaving = a.stay <= 0 && a.leaves()
	if a.leaving && a.led {
		a.returns++
	}
	if a.stay <= 0 {
		a.draw()
	}
}

// leaves decides whether we leave who answers, now that it has answered so often.
// Nobody leaves a standby for the leader, since we would only come back. Of
// standbys we draw one, and stay if it is this: if all left, all would meet again.
func (a *asker) leaves() bool {
	others := 0
	for _, m := range a.managers {
		if m != a.answerer && m != a.leader {
			others++
		}
	}
	return others > 0 && (a.led || rand.IntN(others+1) > 0) //nolint:gosec // to spread load
}

// draw decides how many answers we take of who answers.
func (a *asker) draw() {
	switch {
	case !a.led:
		a.stay = fromHalf(standbyStay)
	case a.returns == 0:
		a.stay = 1 + rand.IntN(firstStay) //nolint:gosec // to spread load
	default:
		a.stay = fromHalf(firstStay << min(a.returns, maxReturns))
	}
}

// fromHalf draws a number from the upper half of those up to n.
func fromHalf(n int) int { return n - rand.IntN(n/2) } //nolint:gosec // to spread load

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
	if len(a.rest) == 0 {
		return false
	}
	a.pass()
	return true
}

// round is everybody but one, from whose turn it is, and the leader last.
func (a *asker) round(but string) (all []string) {
	leads := false
	for i := range a.managers {
		switch m := a.managers[(a.turn+i)%len(a.managers)]; m {
		case but:
		case a.leader:
			leads = true
		default:
			all = append(all, m)
		}
	}
	if leads {
		all = append(all, a.leader)
	}
	return all
}

// advance makes it the turn of who comes after the one that is next.
func (a *asker) advance() {
	if i := slices.Index(a.managers, a.rest[0]); i >= 0 {
		a.turn = (i + 1) % len(a.managers)
	}
}

// pass puts the question to who is next.
func (a *asker) pass() {
	a.asked, a.rest = a.rest[0], a.rest[1:]
	a.send(a.asked, a.question)
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
	return leasehold.Errorf(opOpen, leasehold.ErrNotFound, string(n),
		"manager %s says that there is no such namespace: create it with `leasehold namespace create %s`, or mend the name",
		manager, n)
}
