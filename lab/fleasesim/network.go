package fleasesim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

type packet struct {
	from     *process
	envelope flease.Envelope
	messages []flease.Message
}

func (w *world) connect() {
	w.usual = engine.Pick[time.Duration](w.Random, 1, 5, 20) * time.Millisecond
	w.Net.Connect(len(w.processes))
	w.Net.Least, w.Net.Most, w.Net.AlwaysDraw = w.usual/10, w.usual+1, true
	w.Net.Repeat = func() time.Duration { return w.Below([]time.Duration{w.usual, 4 * lease}[w.Random.IntN(2)]) }
}

func (w *world) send(from *process, id flease.Process, e *flease.Envelope, msgs []flease.Message) {
	w.Messages += uint64(max(len(msgs), 1))
	to := w.byID[id][0]
	if twins := w.byID[id]; len(twins) > 1 {
		to = twins[w.Random.IntN(len(twins))] // they compete for one address
	}
	w.Net.Send(from.index, to.index, &packet{from, *e, slices.Clone(msgs)})
}

// answer sends a reply envelope on the connection of a packet.
func (w *world) answer(from, to *process, e *flease.Envelope) {
	w.Messages++
	w.Net.SendOnce(from.index, to.index, &packet{from, *e, nil})
}

func (w *world) describe(p *process, in *packet) {
	var b strings.Builder
	for i := range in.messages {
		fmt.Fprintf(&b, "; %s", w.describeMessage(&in.messages[i]))
	}
	e := &in.envelope
	w.Printf("%s -> %s (%04x to %04x)%s", in.from.label, p.label, e.Incarnation>>48, e.To>>48, b.String())
}

func (w *world) describeMessage(m *flease.Message) string {
	text := fmt.Sprintf("%s %s %s", KindName(m.Kind), m.Name, describeBallot(m.Ballot))
	switch m.Kind {
	case flease.KindHeld, flease.KindPromise:
		return fmt.Sprintf("%s, written %s: %s", text, describeBallot(m.Written), w.describeValue(&m.Value))
	case flease.KindWrite:
		return text + ": " + w.describeValue(&m.Value)
	case flease.KindAccept:
		return fmt.Sprintf("%s serial %d", text, m.Value.Serial)
	case flease.KindReject:
		return text + " by " + describeBallot(m.Written)
	default:
		return text
	}
}

// KindName returns the name of a kind of message in a trace.
func KindName(k flease.Kind) string {
	return [...]string{"?", "read", "write", "promise", "accept", "reject", "held", "insist"}[k]
}

func describeBallot(b flease.Ballot) string {
	return fmt.Sprintf("%d.%d.%d", b.Interval, b.Round, b.Process)
}

func (w *world) describeValue(v *flease.Value) string {
	if v.Owner == 0 {
		return "nothing"
	}
	text := fmt.Sprintf("p%d(%04x) serial %d fence %d until %.3f left %v", v.Owner, v.Incarnation>>48, v.Serial, v.Fence, w.Seconds(int64(v.Until)), v.Left)
	if v.Released {
		text += " released"
	}
	return text
}
