package manager

import (
	"slices"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/protocol"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// lookupQueue is how much news may wait for a lookup that reads slowly. Beyond that it is
// dropped: the lookup finds that some is missing, and asks.
const lookupQueue = 32

// outgoing is a message to a lookup: one of its own, or an encoded update that
// others get too, marked as an answer to it.
type outgoing struct {
	message *leaseholdv1.FollowResponse
	update  *encoded
	answer  *protocol.LookupReply // nil if the update was not asked for
}

// mail is what waits for a lookup: the answer to what it last asked, and news. A lookup that
// does not hear from us asks again, so that earlier answers are of no use to it; and since
// each may be the whole table, to send them all would make us slower yet.
type mail struct {
	ready chan struct{} // has one if there is some

	mu      sync.Mutex
	answer  *outgoing
	news    []outgoing // the oldest first
	taking  bool       // something was taken, and nothing after it
	claimed bool       // somebody else sends, and nothing can be taken
	slow    int        // for how many waves more nobody else sends
	closed  bool       // nobody takes anything any more
}

func newMail() *mail { return &mail{ready: make(chan struct{}, 1)} }

// reply leaves an answer, in place of one that has not left yet, and of all news that it
// includes.
func (m *mail) reply(out outgoing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = &out
	if with := out.answer; with != nil {
		m.news = slices.DeleteFunc(m.news, func(o outgoing) bool {
			return o.update.reply.Term == with.Term && o.update.reply.LSN <= with.LSN
		})
	}
	m.wake()
}

// add leaves news. If there is too much, all that waits is dropped: what comes next tells the
// lookup that something is missing.
func (m *mail) add(out outgoing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leave(out)
}

func (m *mail) leave(out outgoing) {
	if len(m.news) >= lookupQueue {
		m.news = m.news[:0]
	}
	m.news = append(m.news, out)
	m.wake()
}

// instead takes the answer to what was asked after the question that another one answers, and
// reports false if there is none, or if that is not about the table.
func (m *mail) instead(of outgoing) (outgoing, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if of.answer == nil || m.answer == nil || m.answer.update == nil {
		return outgoing{}, false
	}
	out := *m.answer
	m.answer = nil
	return out, true
}

// take takes what is to be sent next, and reports false if there is nothing, or if somebody
// else sends: whoever takes hears when that is over.
func (m *mail) take() (outgoing, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claimed {
		return outgoing{}, false
	}
	m.taking = true
	if m.answer != nil {
		out := *m.answer
		m.answer = nil
		return out, true
	}
	if len(m.news) == 0 {
		m.news, m.taking = nil, false // most of the time there is none
		return outgoing{}, false
	}
	out := m.news[0]
	m.news = slices.Delete(m.news, 0, 1)
	return out, true
}

// attend makes the caller the one who sends what is about to come, until it says release, if there
// is nothing to send now and nobody sends. Nobody is woken meanwhile.
func (m *mail) attend() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claimed || m.taking || m.closed || m.waiting() {
		return false
	}
	m.claimed = true
	return true
}

// takeAnswer takes the answer that has come since the caller attends, if one has.
func (m *mail) takeAnswer() *outgoing {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.answer
	m.answer = nil
	return out
}

// returnAnswer leaves an answer that was taken and not sent, unless there is a newer one.
func (m *mail) returnAnswer(out *outgoing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answer == nil {
		m.answer = out
	}
}

// claim reports whether everything has been sent, as far as gRPC has taken it, and whoever reads it
// has not been slow of late. If so, the caller may send news, and nobody else until it says release.
// Otherwise the news is left.
func (m *mail) claim(news []outgoing) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claimed || m.taking || m.closed || m.slow > 0 || m.waiting() {
		m.slow = max(0, m.slow-1)
		for _, out := range news {
			m.leave(out)
		}
		return false
	}
	m.claimed = true
	return true
}

// release ends a claim. What was not sent, and what has come meanwhile, can be taken now, in
// this order. A reader that was slow is not claimed again for some time.
func (m *mail) release(unsent []outgoing, slow bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claimed = false
	if slow {
		m.slow = slowFor
	}
	m.news = append(slices.Clone(unsent), m.news...)
	if m.waiting() {
		m.wake()
	}
}

// close says that nobody takes anything any more. So nobody else is to send, either.
func (m *mail) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

func (m *mail) waiting() bool { return m.answer != nil || len(m.news) > 0 }

// wake says that something can be taken. While somebody else sends nothing can: release wakes.
func (m *mail) wake() {
	if m.claimed {
		return
	}
	select {
	case m.ready <- struct{}{}:
	default:
	}
}
