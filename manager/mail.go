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
	telling *telling              // that it is part of; nil if of none
}

// mail is what waits for a lookup: the answer to what it last asked, and news. A lookup that
// does not hear from us asks again, so that earlier answers are of no use to it; and since
// each may be the whole table, to send them all would make us slower yet.
type mail struct {
	ready chan struct{} // has one if there is some

	mu      sync.Mutex
	answer  *outgoing
	news    []outgoing // the oldest first
	sending bool       // something was taken, and nothing after it
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
			old := o.update.reply.Term == with.Term && o.update.reply.LSN <= with.LSN
			if old {
				o.telling.told()
			}
			return old
		})
	}
	m.wake()
}

// add leaves news. If there is too much, all that waits is dropped: what comes next tells the
// lookup that something is missing.
func (m *mail) add(out outgoing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.news) >= lookupQueue {
		for _, o := range m.news {
			o.telling.told()
		}
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

// take takes what is to be sent next, and reports false if there is nothing.
func (m *mail) take() (outgoing, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sending = true
	if m.answer != nil {
		out := *m.answer
		m.answer = nil
		return out, true
	}
	if len(m.news) == 0 {
		m.news, m.sending = nil, false // most of the time there is none
		return outgoing{}, false
	}
	out := m.news[0]
	m.news = slices.Delete(m.news, 0, 1)
	return out, true
}

// idle reports whether everything has been sent, as far as gRPC has taken it.
func (m *mail) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.sending && m.answer == nil && len(m.news) == 0
}

func (m *mail) wake() {
	select {
	case m.ready <- struct{}{}:
	default:
	}
}
