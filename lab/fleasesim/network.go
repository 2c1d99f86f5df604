package fleasesim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

type packet struct {
	from     *process
	envelope flease.Envelope
	messages []flease.Message
}

func (w *world) connect() {
	w.usual = milliseconds(w.Random, 1, 5, 20)
	w.Net.Connect(len(w.processes))
	w.Net.Least, w.Net.Most, w.Net.AlwaysDraw = w.usual/10, w.usual+1, true
	w.Net.Repeat = func() time.Duration { return w.Below([]time.Duration{w.usual, 4 * lease}[w.Random.IntN(2)]) }
}

func (w *world) send(from *process, id flease.Process, e *flease.Envelope, msgs []flease.Message) {
	w.Messages += uint64(max(len(msgs), 1))
	to := w.byID[id][0]
	if twins := w.byID[id]; len(twins) > 1 {
		to = twins[w.Random.IntN(len(twins))] // they fight for one address
	}
	w.Net.Send(from.index, to.index, &packet{from, *e, slices.Clone(msgs)})
}

// answer carries an envelope the way back that one has come.
func (w *world) answer(from, to *process, e *flease.Envelope) {
	w.Messages++
	w.Net.SendOnce(from.index, to.index, &packet{from, *e, nil})
}

func (w *world) describe(p *process, mail *packet) {
	var b strings.Builder
	for i := range mail.messages {
		fmt.Fprintf(&b, "; %s", w.describeMessage(&mail.messages[i]))
	}
	e := &mail.envelope
	w.Printf("%s -> %s (%04x to %04x)%s", mail.from.label, p.label, e.Incarnation>>48, e.To>>48, b.String())
}

func (w *world) describeMessage(m *flease.Message) string {
	ballot := func(b flease.Ballot) string { return fmt.Sprintf("%d.%d.%d", b.Interval, b.Round, b.Process) }
	value := func(v *flease.Value) string {
		if v.Owner == 0 {
			return "nothing"
		}
		text := fmt.Sprintf("p%d(%04x) serial %d fence %d until %.3f left %v", v.Owner, v.Incarnation>>48, v.Serial, v.Fence, w.Seconds(int64(v.Until)), v.Left)
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
