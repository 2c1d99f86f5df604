package fleasenet

import (
	"encoding/binary"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// A setting is what both ends of a packet know when they write or read its
// messages.
type setting struct {
	processes    [4]flease.Process // by form; the last is scratch
	incarnations [4]uint64
	sent         int64      // nanoseconds
	to, from     flease.Ref // the newest that are not 0
	interval     uint64     // of the message before
	serial       uint64     // the newest that is not 0
}

func (s *setting) begin(from, to flease.Process, e *flease.Envelope) {
	s.processes = [4]flease.Process{0, from, to}
	s.incarnations = [4]uint64{0, e.Incarnation, e.To}
	s.sent = int64(e.Sent)
	s.to, s.from, s.interval, s.serial = 0, 0, 0, 0
}

// An encoder writes messages into a buffer that has room: at least the largest
// message and a field more, whenever one is begun.
type encoder struct {
	setting
	b  []byte // as far as there is room
	at int    // where the next byte goes
}

// put writes the lowest bytes of n. It writes eight, of which the next field
// covers those that were too many.
func (w *encoder) put(n uint64, width int) {
	binary.LittleEndian.PutUint64(w.b[w.at:], n)
	w.at += width
}

// message writes one message, whose name is not too long.
func (w *encoder) message(m *flease.Message) {
	start := w.at
	w.at += 3 // head and tail come last
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

// written writes the second ballot, and returns its part of the head.
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

// The methods below write a field and return its form.

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
