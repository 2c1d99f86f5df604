package lookup

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// A target chooses the manager that gets a request.
//
// One manager gets a request at a time, because each may answer with the whole table. If that
// manager fails (connection error, refusal, no table), the request goes to the next manager at once, to each
// manager at most once. If it does not answer, the machine times out, and the next manager gets the retry. If it
// answers with a table that is older than maxAge, as a standby does that has lost the leader, the request goes to
// the next manager, too. If all tables are older, the following requests go round-robin.
//
// Lookups avoid load on the leader, which serves the owners: the leader is the last choice, and a lookup leaves it after a few
// answers. A lookup leaves a standby after about an hour, so that lookups spread over managers that were
// restarted. To leave means to try another manager once: if that one fails, the previous one gets the
// request next.
type target struct {
	managers []storage.ManagerID // in random order, so that lookups spread
	maxAge   time.Duration       // of the table of a manager that gets the next request, too
	rand     *rand.Rand

	request  *protocol.LookupRequest // nil once it was answered
	current  storage.ManagerID       // has the request
	next     []storage.ManagerID     // get it next, in this order
	fallback storage.ManagerID       // has answered it with an old table
	turn     int                     // index of the manager that is next round-robin
	leader   storage.ManagerID       // the last manager that has reported to lead

	source  storage.ManagerID // answered the last request
	led     bool              // source was the leader
	old     bool              // source had an old table
	leaving bool              // the next request goes to another manager
	stay    int               // answers of source until the lookup leaves it
	returns int               // how often the lookup left a leader and found no better manager
}

// Number of replies until a lookup leaves a manager: the first leader (random up to FirstStay, so that lookups do not
// leave a new leader at the same time); a leader without alternative, doubled for each attempt up to maxReturns, because
// an attempt costs a timeout; a standby.
const (
	FirstStay   = 8
	maxReturns  = 4
	StandbyStay = 720
)

func newTarget(managers []storage.ManagerID, maxAge time.Duration, random *rand.Rand) target {
	t := target{maxAge: maxAge, rand: random}
	t.replace(managers)
	return t
}

// replace replaces the managers. A pending request is not passed on to a removed one.
func (t *target) replace(managers []storage.ManagerID) {
	t.managers, t.turn, t.leaving = slices.Clone(managers), 0, false
	t.rand.Shuffle(len(t.managers), func(i, j int) { t.managers[i], t.managers[j] = t.managers[j], t.managers[i] })
	t.next = slices.DeleteFunc(t.next, func(m storage.ManagerID) bool { return !slices.Contains(t.managers, m) })
}

// complete is replace for the first complete list. A pending request is passed on to the managers that are new.
func (t *target) complete(managers []storage.ManagerID) {
	before := t.managers
	t.replace(managers)
	for _, m := range t.managers {
		if t.request != nil && !slices.Contains(before, m) {
			t.next = append(t.next, m)
		}
	}
}

// choose returns the manager for a new request. The machine's own choice is the manager whose message it
// received last, or empty after a timeout.
func (t *target) choose(hint storage.ManagerID, r *protocol.LookupRequest) storage.ManagerID {
	answered := t.request == nil
	if t.fallback != "" { // no manager had a newer table
		answered, t.source, t.old = true, t.fallback, true
	}
	t.request, t.fallback = r, ""
	switch {
	case hint == "":
		if answered || len(t.next) == 0 {
			t.next = t.round("")
			t.advance()
		}
	case !answered: // a redirect
		t.next = slices.Insert(t.round(hint), 0, hint)
	case t.old:
		t.next = append(t.round(t.source), t.source)
		if i := slices.Index(t.next, t.leader); i > 0 {
			t.next = slices.Insert(slices.Delete(t.next, i, i+1), 0, t.leader)
		}
		t.advance()
	case t.leaving:
		t.leaving = false
		t.next = slices.Insert(t.round(t.source), 1, t.source)
		t.advance()
	default: // the hint may be a manager that the lookup has left
		t.next = slices.Insert(t.round(t.source), 0, t.source)
	}
	return t.pass()
}

// answered handles the answer to the current request. It reports whether another manager, t.current, gets the
// request too, because the answer is old.
func (t *target) answered(r *protocol.LookupReply) (passed bool) {
	from, old := r.Leader, r.Age > t.maxAge
	if r.Leads {
		t.leader = from
	} else if t.leader == from {
		t.leader = ""
	}
	if old && !t.old && len(t.next) > 0 {
		t.fallback = from
		t.pass()
		return true
	}
	if from != t.source || r.Leads != t.led {
		if !r.Leads && !old {
			t.returns = 0
		}
		t.source, t.led = from, r.Leads
		t.drawStay()
	}
	t.request, t.next, t.fallback, t.old = nil, nil, "", old
	t.stay--
	t.leaving = t.stay <= 0 && t.leaves()
	if t.leaving && t.led {
		t.returns++
	}
	if t.stay <= 0 {
		t.drawStay()
	}
	return false
}

// failed handles a failure of a manager. It reports whether another manager, t.current, gets the request, and
// whether the request is still pending.
func (t *target) failed(from storage.ManagerID) (passed, pending bool) {
	switch {
	case t.request == nil:
		return false, false
	case t.current != from:
		return false, true
	case len(t.next) == 0:
		return false, false
	}
	t.pass()
	return true, true
}

// leaves decides whether the lookup leaves its source. It does not leave a standby for the leader. Among
// standbys it draws one, and stays if that is its source: otherwise all lookups of a standby would move
// together.
func (t *target) leaves() bool {
	others := 0
	for _, m := range t.managers {
		if m != t.source && m != t.leader {
			others++
		}
	}
	return others > 0 && (t.led || t.rand.IntN(others+1) > 0)
}

// drawStay draws the number of answers until the lookup leaves its source.
func (t *target) drawStay() {
	switch {
	case !t.led:
		t.stay = t.upperHalf(StandbyStay)
	case t.returns == 0:
		t.stay = 1 + t.rand.IntN(FirstStay)
	default:
		t.stay = t.upperHalf(FirstStay << min(t.returns, maxReturns))
	}
}

// upperHalf draws a number from n/2 to n.
func (t *target) upperHalf(n int) int { return n - t.rand.IntN(n/2) }

// round returns all managers but one, round-robin, the leader last.
func (t *target) round(but storage.ManagerID) (all []storage.ManagerID) {
	leads := false
	for i := range t.managers {
		switch m := t.managers[(t.turn+i)%len(t.managers)]; m {
		case but:
		case t.leader:
			leads = true
		default:
			all = append(all, m)
		}
	}
	if leads {
		all = append(all, t.leader)
	}
	return all
}

// advance sets the turn to the manager after the next one.
func (t *target) advance() {
	if i := slices.Index(t.managers, t.next[0]); i >= 0 {
		t.turn = (i + 1) % len(t.managers)
	}
}

// pass makes the next manager the current one.
func (t *target) pass() storage.ManagerID {
	t.current, t.next = t.next[0], t.next[1:]
	return t.current
}
