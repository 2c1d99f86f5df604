package fleasenet

import (
	"encoding/binary"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// A packetContext is the state of encoder and decoder that omitted fields refer to.
type packetContext struct {
	processes    [4]flease.Process // by form; the last is scratch
	incarnations [4]uint64
	sent         int64      // nanoseconds
	to, from     flease.Ref // the previous ones that are not 0
	interval     uint64     // of the previous message
	serial       uint64     // the previous one that is not 0
}

func (s *packetContext) begin(from, to flease.Process, e *flease.Envelope) {
	s.processes = [4]flease.Process{0, from, to}
	s.incarnations = [4]uint64{0, e.Incarnation, e.To}
	s.sent = int64(e.Sent)
	s.to, s.from, s.interval, s.serial = 0, 0, 0, 0
}

// An encoder encodes messages into a buffer. The buffer must have room for the largest message and one more field
// before each message.
type encoder struct {
	packetContext
	b  []byte // up to its capacity
	at int    // offset of the next byte
}

// put encodes the lowest bytes of n. It writes eight; the next field overwrites the excess.
func (w *encoder) put(n uint64, width int) {
	binary.LittleEndian.PutUint64(w.b[w.at:], n)
	w.at += width
}

// message encodes one message. Its name must not be too long.
func (w *encoder) message(m *flease.Message) {
	start := w.at
	w.at += 3 // head and tail are written last
	tail := w.ref(m.To, &w.to)<<tailTo | w.ref(m.From, &w.from)<<tailFrom
	head := uint64(m.Kind) & headKind
	if m.Ballot.Interval != w.interval {
		head |= headInterval
		w.interval = m.Ballot.Interval
		w.put(w.interval, 8)
	}
	head |= w.process(m.Ballot.Process) << headProcess
	head |= w.round(m.Ballot.Round) << headRound
	if m.Written != (flease.Ballot{}) {
		head |= headWritten | w.written(m)
	}
	if m.Fence != 0 || m.Value != (flease.Value{}) {
		head |= headValue
		w.value(&m.Value, m.Fence)
	}
	if named(m.Kind) {
		w.put(uint64(len(m.Name)), 1)
		w.at += copy(w.b[w.at:], m.Name)
	}
	binary.LittleEndian.PutUint16(w.b[start:], uint16(head))
	w.b[start+2] = byte(tail)
}

// written encodes the second ballot, and returns its bits of the head.
func (w *encoder) written(m *flease.Message) (head uint64) {
	if span := int64(m.Written.Interval - m.Ballot.Interval); span != 0 {
		head = w.offset(span) << headWrittenSpan
	}
	head |= w.process(m.Written.Process) << headWrittenBy
	return head | w.round(m.Written.Round)<<headWrittenRound
}

func (w *encoder) value(v *flease.Value, fence uint64) {
	start := w.at
	w.at += 2
	head := w.process(v.Owner) << valueOwner
	incarnation := pick(&w.incarnations, v.Incarnation)
	w.put(v.Incarnation, width(incarnationWidths, incarnation))
	head |= incarnation << valueIncarnation
	if v.Serial != 0 {
		head |= w.next(v.Serial) << valueSerial
	}
	if v.Fence != 0 {
		head |= w.offset(int64(v.Fence)-w.sent/millisecond) << valueFence
	}
	if v.Until != 0 {
		head |= w.offset(int64(v.Until)-w.sent) << valueUntil
	}
	if v.Left != 0 {
		head |= w.offset(int64(v.Left)) << valueLeft
	}
	if v.Released {
		head |= valueReleased
	}
	switch fence {
	case 0:
	case v.Fence:
		head |= alike << messageFence
	default:
		head |= w.fence(fence) << messageFence
	}
	binary.LittleEndian.PutUint16(w.b[start:], uint16(head))
}

// The following methods encode a field and return its form.

func (w *encoder) ref(r flease.Ref, last *flease.Ref) uint64 {
	if r == 0 {
		return 0
	}
	n := int32(r - *last)
	*last = r
	form := refForm(n)
	w.put(uint64(n), width(refWidths, form))
	return form
}

func (w *encoder) process(p flease.Process) uint64 {
	form := pick(&w.processes, p)
	w.put(uint64(p), width(processWidths, form))
	return form
}

func (w *encoder) round(n uint32) uint64 {
	form := roundForm(n)
	w.put(uint64(n), width(roundWidths, form))
	return form
}

func (w *encoder) offset(n int64) uint64 {
	form := offsetForm(n)
	w.put(uint64(n), width(offsetWidths, form))
	return form
}

func (w *encoder) next(serial uint64) uint64 {
	n := int64(serial - w.serial)
	w.serial = serial
	form := serialForm(n)
	w.put(uint64(n), width(serialWidths, form))
	return form
}

func (w *encoder) fence(f uint64) uint64 {
	n := int64(f) - w.sent/millisecond
	form := fenceForm(n)
	w.put(uint64(n), width(fenceWidths, form))
	return form
}
