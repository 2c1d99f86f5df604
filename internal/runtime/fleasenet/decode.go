package fleasenet

import (
	"encoding/binary"
	"time"
	"unsafe"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// A decoder decodes messages from a buffer that is longer than they are by one field. Invalid messages may
// make it read there, but not beyond.
type decoder struct {
	packetContext
	b   []byte
	at  int
	end int // of the messages; b has 8 bytes more
}

// take reads a field. After the end its result is undefined.
func (r *decoder) take(width int) uint64 {
	if r.at > r.end {
		return 0
	}
	n := binary.LittleEndian.Uint64(r.b[r.at:]) & (1<<(8*uint(width)) - 1)
	r.at += width
	return n
}

// messages appends all messages to into. Their names are slices of the buffer. It reports whether all are
// valid.
func (r *decoder) messages(into []flease.Message) ([]flease.Message, bool) {
	for r.at < r.end {
		if len(into) == cap(into) {
			into = append(into, flease.Message{})
		} else {
			into = into[:len(into)+1]
		}
		if !r.message(&into[len(into)-1]) {
			return into, false
		}
	}
	return into, true
}

// message decodes one message into m.
func (r *decoder) message(m *flease.Message) bool {
	head := r.take(3)
	tail := head >> 16
	m.Kind = flease.Kind(head & headKind)
	m.To = r.ref(tail>>tailTo, &r.to)
	m.From = r.ref(tail>>tailFrom, &r.from)
	if head&headInterval != 0 {
		r.interval = r.take(8)
	}
	m.Ballot.Interval = r.interval
	m.Ballot.Process = r.process(head >> headProcess)
	m.Ballot.Round = r.round(head >> headRound)
	ok := tail&tailReserved == 0 && tail>>tailTo&formMask != 3 && tail>>tailFrom&formMask != 3
	switch {
	case head&headWritten != 0:
		m.Written.Interval = m.Ballot.Interval + uint64(r.offset(head>>headWrittenSpan))
		m.Written.Process = r.process(head >> headWrittenBy)
		m.Written.Round = r.round(head >> headWrittenRound)
	default:
		m.Written = flease.Ballot{}
		ok = ok && head&(headValue-headWritten) == 0
	}
	switch {
	case head&headValue != 0:
		ok = r.value(m) && ok
	default:
		m.Value, m.Fence = flease.Value{}, 0
	}
	return ok && m.Kind >= flease.KindRead && m.Kind <= flease.KindInsist && r.name(m)
}

// name decodes the name of a read as a slice of the buffer. It reports whether the message ends within the
// data.
func (r *decoder) name(m *flease.Message) bool {
	m.Name = ""
	if named(m.Kind) {
		length := int(r.take(1))
		if length > r.end-r.at {
			return false
		}
		m.Name = unsafe.String(unsafe.SliceData(r.b[r.at:]), length) //nolint:gosec // within bounds, and valid as documented at Receive
		r.at += length
	}
	return r.at <= r.end
}

func (r *decoder) value(m *flease.Message) bool {
	v, head := &m.Value, r.take(2)
	v.Owner = r.process(head >> valueOwner)
	which := head >> valueIncarnation & formMask
	r.incarnations[inFull] = r.take(width(incarnationWidths, which))
	v.Incarnation = r.incarnations[which]
	v.Serial, v.Fence, v.Until = 0, 0, 0
	if head>>valueSerial&formMask != 0 {
		v.Serial = r.next(head >> valueSerial)
	}
	if head>>valueFence&formMask != 0 {
		v.Fence = uint64(r.offset(head>>valueFence) + r.sent/millisecond)
	}
	if head>>valueUntil&formMask != 0 {
		v.Until = flease.Wall(r.offset(head>>valueUntil) + r.sent)
	}
	v.Left = time.Duration(r.offset(head >> valueLeft))
	v.Released = head&valueReleased != 0
	switch head >> messageFence & formMask {
	case 0:
		m.Fence = 0
	case alike:
		m.Fence = v.Fence
	default:
		m.Fence = r.fence(head >> messageFence)
	}
	return head&valueReserved == 0
}

// The following methods decode a field. Its form is in the lowest bits of the argument.

func (r *decoder) ref(bits uint64, last *flease.Ref) flease.Ref {
	form := bits & formMask
	if form == 0 {
		return 0
	}
	n := width(refWidths, form)
	*last += flease.Ref(extend(r.take(n), n))
	return *last
}

func (r *decoder) process(bits uint64) flease.Process {
	which := bits & formMask
	r.processes[inFull] = flease.Process(r.take(width(processWidths, which)))
	return r.processes[which]
}

func (r *decoder) round(bits uint64) uint32 {
	return uint32(r.take(width(roundWidths, bits&formMask)))
}

func (r *decoder) offset(bits uint64) int64 {
	n := width(offsetWidths, bits&formMask)
	return extend(r.take(n), n)
}

func (r *decoder) next(bits uint64) uint64 {
	n := width(serialWidths, bits&formMask)
	r.serial += uint64(extend(r.take(n), n))
	return r.serial
}

func (r *decoder) fence(bits uint64) uint64 {
	n := width(fenceWidths, bits&formMask)
	return uint64(extend(r.take(n), n) + r.sent/millisecond)
}
