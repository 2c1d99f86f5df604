package transcript

import (
	"fmt"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A message is a message in flight from one process to another.
type message struct {
	from, to string
	what     any
	// vain is the event of the sender of a store request without a reply; nil for all other messages.
	vain any
	// abandoned: this store request has timed out.
	abandoned bool
}

func (m *message) link() string { return m.from + "->" + m.to }

// send adds a message to those in flight.
func (w *world) send(m *message) {
	fate := ""
	switch to := w.find(m.to); {
	case w.cut[m.link()]:
		fate = " (lost: the link is cut)"
	case to != nil && !to.self().alive:
		fate = fmt.Sprintf(" (lost: %s is down)", m.to)
	default:
		w.underWay = append(w.underWay, m)
	}
	w.then("%s %s%s", m.link(), w.quote(m), fate)
}

func (w *world) quote(m *message) string {
	if p := w.find(m.from); p != nil {
		return p.quote(m.to, m.what)
	}
	return w.store.quote(m.what)
}

// pick removes a message of a link: the first, or the last.
func (w *world) pick(link string, last bool) *message {
	order := slices.All(w.underWay)
	if last {
		order = slices.Backward(w.underWay)
	}
	for i, m := range order {
		if m.link() == link {
			w.underWay = slices.Delete(w.underWay, i, i+1)
			return m
		}
	}
	return nil
}

// deliver delivers a message.
func (w *world) deliver(m *message) {
	if m.to == storeName {
		w.store.serve(m)
		return
	}
	if m.to == appName {
		w.find(m.from).(*owner).complete(m)
		return
	}
	p := w.find(m.to)
	if m.abandoned {
		w.say("%s has timed out before %s", m.to, w.quote(m))
		return
	}
	w.say("%s receives from %s: %s", m.to, m.from, w.quote(m))
	if !p.self().alive {
		w.then("%s is down", m.to)
		return
	}
	what := m.what
	if w.unfiltered {
		what = w.disguise(m)
	}
	p.receive(m.from, what)
	w.audit()
}

// lose drops a message. After the loss of a store request or its reply the outcome is unknown.
func (w *world) lose(m *message) {
	if m.to == appName {
		w.find(m.from).(*owner).fail(m)
		return
	}
	w.say("lost: %s %s", m.link(), w.quote(m))
	asker := m.from
	if asker == storeName {
		asker = m.to
	}
	if p := w.find(asker); m.vain != nil && p != nil && p.self().alive && !m.abandoned {
		w.then("the outcome is unknown to %s", asker)
		p.receive(storeName, m.vain)
		w.audit()
	}
}

// disguise changes a lease message as if it had crossed no other.
func (w *world) disguise(m *message) any {
	switch what := m.what.(type) {
	case *protocol.LeaseRequest:
		r := *what
		if to := w.find(m.to).(*manager); to.node.Manager(namespace) != nil {
			if sent := to.sent[r.Holder.Session]; sent > 0 {
				r.Term, r.Heard = to.node.Manager(namespace).Term(), sent
			}
		}
		return &r
	case *protocol.LeaseReply:
		r := *what
		r.Echo = w.find(m.to).(*owner).seq
		return &r
	}
	return m.what
}

// deliverAll delivers all messages in flight, in the order of sending, and those that are sent as a consequence.
func (w *world) deliverAll() error {
	waits := func(m *message) bool {
		to := w.find(m.to)
		return w.held[m.link()] || to != nil && to.self().asleep
	}
	for range maxSteps {
		i := slices.IndexFunc(w.underWay, func(m *message) bool { return !waits(m) })
		if i < 0 {
			return nil
		}
		m := w.underWay[i]
		w.underWay = slices.Delete(w.underWay, i, i+1)
		w.deliver(m)
	}
	return fmt.Errorf("the messages do not end")
}
