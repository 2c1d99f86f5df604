package transcript

import (
	"fmt"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A message is under way from one process to another.
type message struct {
	from, to string
	what     any
	// vain is what the sender of a store request concludes if no answer comes;
	// nil for all other messages.
	vain any
	// abandoned: the sender of this store request no longer waits.
	abandoned bool
}

func (m *message) link() string { return m.from + "->" + m.to }

// send puts a message under way.
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

// pick takes a message of a link off the wire: the first, or the last.
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

// deliver lets a message arrive.
func (w *world) deliver(m *message) {
	if m.to == storeName {
		w.store.serve(m)
		return
	}
	if m.to == appName {
		w.find(m.from).(*owner).served(m)
		return
	}
	p := w.find(m.to)
	if m.abandoned {
		w.say("%s no longer waits for %s", m.to, w.quote(m))
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

// lose drops a message. Whoever waits for the store is left in the dark.
func (w *world) lose(m *message) {
	if m.to == appName {
		w.find(m.from).(*owner).failed(m)
		return
	}
	w.say("lost: %s %s", m.link(), w.quote(m))
	asker := m.from
	if asker == storeName {
		asker = m.to
	}
	if p := w.find(asker); m.vain != nil && p != nil && p.self().alive && !m.abandoned {
		w.then("%s does not know whether it happened", asker)
		p.receive(storeName, m.vain)
		w.audit()
	}
}

// disguise makes a lease message look as if it had crossed no other.
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

// settle lets everything under way arrive, in the order of sending, and all
// that is sent in turn.
func (w *world) settle() error {
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
	return fmt.Errorf("there is no end to the messages")
}
