package fleasesim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/machine/flease"
)

// A packet is an envelope with its messages, under way.
type packet struct {
	from     *process
	envelope flease.Envelope
	messages []flease.Message
}

// A network carries packets. It has no connections and no order.
type network struct {
	world *world
	n     int32
	cuts  []int // how many faults keep packets back, by from*n + to

	usual                  time.Duration // most that a packet takes while nothing is wrong
	loss, duplicate, delay int           // percent
	longest                time.Duration // most that one takes that is delayed
}

func (n *network) init(w *world) {
	n.world = w
	n.n = int32(len(w.processes))
	n.cuts = make([]int, n.n*n.n)
	n.usual = milliseconds(w.random, 1, 5, 20)
}

// cut makes a link worse by one fault, or better again.
func (n *network) cut(from, to *process, by int) {
	n.cuts[from.index*n.n+to.index] += by
}

func (n *network) send(from *process, id flease.Process, e *flease.Envelope, msgs []flease.Message) {
	w := n.world
	w.stats.messages += uint64(max(len(msgs), 1))
	to := w.byID[id][0]
	if twins := w.byID[id]; len(twins) > 1 {
		to = twins[w.random.IntN(len(twins))] // they fight for one address
	}
	if n.cuts[from.index*n.n+to.index] > 0 || w.random.IntN(100) < n.loss {
		return
	}
	mail := &packet{from, *e, slices.Clone(msgs)}
	n.post(to, mail, n.latency())
	if w.random.IntN(100) < n.duplicate {
		n.post(to, mail, n.latency()+w.below([]time.Duration{n.usual, 4 * lease}[w.random.IntN(2)]))
	}
}

// answer carries an envelope the way back that one has come.
func (n *network) answer(from, to *process, e *flease.Envelope) {
	n.world.stats.messages++
	if n.cuts[from.index*n.n+to.index] > 0 || n.world.random.IntN(100) < n.loss {
		return
	}
	n.post(to, &packet{from, *e, nil}, n.latency())
}

func (n *network) post(to *process, mail *packet, d time.Duration) {
	n.world.push(event{at: n.world.now + int64(d), what: arrival, to: to.index, mail: mail})
}

func (n *network) latency() time.Duration {
	d := n.world.span(n.usual/10, n.usual)
	if n.delay > 0 && n.world.random.IntN(100) < n.delay {
		d += n.world.below(n.longest)
	}
	return d
}

// describe writes a packet that arrives into the trace.
func (n *network) describe(p *process, mail *packet) {
	var b strings.Builder
	for i := range mail.messages {
		fmt.Fprintf(&b, "; %s", describe(&mail.messages[i]))
	}
	e := &mail.envelope
	n.world.trace.printf(n.world.now, "%s -> %s (%04x to %04x)%s", mail.from.label, p.label, e.Incarnation>>48, e.To>>48, b.String())
}

func describe(m *flease.Message) string {
	ballot := func(b flease.Ballot) string { return fmt.Sprintf("%d.%d.%d", b.Interval, b.Round, b.Process) }
	value := func(v *flease.Value) string {
		if v.Owner == 0 {
			return "nothing"
		}
		text := fmt.Sprintf("p%d(%04x) serial %d fence %d until %.3f left %v", v.Owner, v.Incarnation>>48, v.Serial, v.Fence, seconds(int64(v.Until)), v.Left)
		if v.Released {
			text += " released"
		}
		return text
	}
	switch m.Kind {
	case flease.KindRead:
		return fmt.Sprintf("read %s %s", m.Name, ballot(m.Ballot))
	case flease.KindInsist:
		return fmt.Sprintf("insist %s %s", m.Name, ballot(m.Ballot))
	case flease.KindHeld:
		return fmt.Sprintf("held %s %s, written %s: %s", m.Name, ballot(m.Ballot), ballot(m.Written), value(&m.Value))
	case flease.KindWrite:
		return fmt.Sprintf("write %s %s: %s", m.Name, ballot(m.Ballot), value(&m.Value))
	case flease.KindPromise:
		return fmt.Sprintf("promise %s %s, written %s: %s", m.Name, ballot(m.Ballot), ballot(m.Written), value(&m.Value))
	case flease.KindAccept:
		return fmt.Sprintf("accept %s %s serial %d", m.Name, ballot(m.Ballot), m.Value.Serial)
	case flease.KindReject:
		return fmt.Sprintf("reject %s %s by %s", m.Name, ballot(m.Ballot), ballot(m.Written))
	}
	return "?"
}
