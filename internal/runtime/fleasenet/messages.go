package fleasenet

import "github.com/leasehold-dev/leasehold/internal/core/machine/flease"

// A message is a head of two bytes, a tail of one byte, and the fields that these do not imply, in this order:
//
//	refs      to, from
//	ballot    interval, process, round
//	written   interval, process, round; if it is not zero
//	value     a head of its own, owner, incarnation, serial, fence, until, left,
//	          and the message's fence; if they are not all zero
//	name      its length in one byte, then the name; in reads only
//
// The form of a field, two bits in a head or tail, is its width or its source:
//
//	process       0 none, 1 the sender, 2 the addressee, 3 in 4 bytes
//	incarnation   0 none, 1 the sender's, 2 the addressee's, 3 in 8 bytes
//	ref           0 zero, or in 1 or 4 bytes, signed, relative to the previous one of
//	              the same direction in the packet; 3 is not used
//	round         0 zero, or in 1, 2 or 4 bytes
//	offset        0 zero, or in 4, 5 or 8 bytes, signed: until and the fence
//	              are relative to the packet's Sent, in nano- and in milliseconds,
//	              and left to 0
//	span          like an offset, but 0 is no difference: the interval of
//	              written, relative to that of the ballot
//	serial        0 zero, or in 1, 4 or 8 bytes, signed, relative to the previous
//	              serial in the packet
//	fence         of the message: 0 zero, 1 the value's, or in 5 or 8 bytes,
//	              signed, relative to Sent
//
// The interval of a ballot is that of the previous message, unless a bit of the head says that it follows in 8
// bytes. Before the first message all previous values are 0. Five bytes of nanoseconds are 9 minutes and four of
// milliseconds 24 days, so usual leases have short encodings.
//
// Messages of all kinds are encoded without loss, except for the names of messages that are neither reads
// nor insist. A zero field costs no bytes.

// The head of a message: single bits, and bit positions of forms.
const (
	headKind         = 7 // a mask: bits 0 to 2
	headInterval     = 1 << 3
	headProcess      = 4
	headRound        = 6
	headWritten      = 1 << 8
	headWrittenSpan  = 9
	headWrittenBy    = 11
	headWrittenRound = 13
	headValue        = 1 << 15
)

// The tail of a message: bit positions of forms.
const (
	tailTo       = 0
	tailFrom     = 2
	tailReserved = 0xf0 // not used; zero
)

// The head of a value.
const (
	valueOwner       = 0
	valueIncarnation = 2
	valueSerial      = 4
	valueFence       = 6
	valueUntil       = 8
	valueLeft        = 10
	valueReleased    = 1 << 12
	messageFence     = 13
	valueReserved    = 1 << 15 // not used; zero
)

const (
	formMask = 3
	inFull   = 3 // form of a process or an incarnation that follows
	alike    = 1 // form of a message's fence that equals its value's

	maxField = 8 // bytes
	// largestMessage is the size of a message with all fields in their longest form.
	largestMessage = 3 + 2*4 + 2*16 + 2 + 4 + 6*8 + 1 + 255

	millisecond = 1e6
)

// Widths of fields by form, four bits each.
const (
	refWidths         = 0x0410
	processWidths     = 0x4000
	incarnationWidths = 0x8000
	roundWidths       = 0x4210
	offsetWidths      = 0x8540
	serialWidths      = 0x8410
	fenceWidths       = 0x8500
)

// named reports whether messages of a kind have the name of their resource.
func named(k flease.Kind) bool { return k == flease.KindRead || k == flease.KindInsist }

// width returns the size of a field by its form.
func width(widths, form uint64) int { return int(widths >> (4 * form) & 15) }

// pick returns the form of a process or incarnation.
func pick[T comparable](known *[4]T, x T) uint64 {
	switch x {
	case known[0]:
		return 0
	case known[1]:
		return 1
	case known[2]:
		return 2
	}
	return inFull
}

// refForm returns the form of a nonzero ref by its difference to the previous one.
func refForm(n int32) uint64 {
	if n == int32(int8(n)) {
		return 1
	}
	return 2
}

// roundForm returns the form of a round.
func roundForm(n uint32) uint64 {
	switch {
	case n == 0:
		return 0
	case n < 1<<8:
		return 1
	case n < 1<<16:
		return 2
	}
	return 3
}

// offsetForm returns the form of an offset, which must be encoded even if it is zero.
func offsetForm(n int64) uint64 {
	switch {
	case n == int64(int32(n)):
		return 1
	case n == n<<24>>24:
		return 2
	}
	return 3
}

// serialForm returns the form of the difference to the previous serial.
func serialForm(n int64) uint64 {
	switch n {
	case int64(int8(n)):
		return 1
	case int64(int32(n)):
		return 2
	}
	return 3
}

// fenceForm returns the form of a message's fence that differs from the value's.
func fenceForm(n int64) uint64 {
	if n == n<<24>>24 {
		return 2
	}
	return 3
}

// extend sign-extends an offset of a number of bytes.
func extend(n uint64, width int) int64 {
	unused := uint(64 - 8*width)
	return int64(n<<unused) >> unused
}
