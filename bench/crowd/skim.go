package crowd

import (
	"encoding/binary"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// An update is what a lookup reads of a message.
type update struct {
	echo, lsn, from uint64
	age             time.Duration
	changes, table  bool
	// after and base are those of a crossing; 0 if there is none.
	after, base uint64
}

// The numbers of its fields.
const (
	responseUpdate protowire.Number = 2
	updateEcho     protowire.Number = 4
	updateLSN      protowire.Number = 5
	updateAge      protowire.Number = 6
	updateChanges  protowire.Number = 7
	updateTable    protowire.Number = 8
	updateCrossing protowire.Number = 10
	changesFrom    protowire.Number = 1
	crossingAfter  protowire.Number = 1
	crossingBase   protowire.Number = 2
)

const (
	prefix = 5 // of a message of gRPC's: whether it is compressed, and its length
	// longestField is that of a tag and a number, or a length.
	longestField = 2 * binary.MaxVarintLen64
)

// A skimmer reads updates as they come, and keeps nothing of the tables in them: those of
// thousands of lookups that come in at once have no room in memory.
type skimmer struct {
	hear func(update)

	start []byte // of what is read next, as far as it has come
	skip  int    // how much of what comes is of no interest
	left  int    // of the message, after its prefix; 0 between messages
	// Where an update ends, and its changes, counted as left is: at or below that we are
	// not in one.
	updateEnd, changesEnd int
	crossing              bool // what ends at changesEnd is a crossing
	found                 update
}

// take takes what comes next.
func (s *skimmer) take(b []byte) {
	for len(b) > 0 {
		if s.skip > 0 {
			n := min(s.skip, len(b))
			b = b[n:]
			s.skip -= n
			s.pass(n)
			continue
		}
		before := len(s.start)
		s.start = append(s.start, b[:min(len(b), longestField-before)]...)
		n := s.next()
		if n == 0 { // it is not whole yet
			b = b[len(s.start)-before:]
			if len(s.start) == longestField {
				s.hear(update{}) // nor will it be: it is nothing that a manager says
				s.start = s.start[:0]
			}
			continue
		}
		b = b[n-before:]
		s.start = s.start[:0]
	}
}

// next reads what is at the start, and returns how long it is; 0 if more must come.
func (s *skimmer) next() int {
	if s.left == 0 {
		if len(s.start) < prefix {
			return 0
		}
		s.left, s.found = int(binary.BigEndian.Uint32(s.start[1:])), update{}
		s.updateEnd, s.changesEnd = s.left, s.left
		if s.left == 0 {
			s.hear(s.found)
		}
		return prefix
	}
	number, kind, n := protowire.ConsumeTag(s.start)
	if n < 0 {
		return 0
	}
	switch kind {
	case protowire.VarintType, protowire.BytesType:
		value, m := protowire.ConsumeVarint(s.start[n:])
		if m < 0 {
			return 0
		}
		n += m
		s.field(number, kind == protowire.BytesType, value, s.left-n)
	case protowire.Fixed64Type:
		s.skip = 8
	case protowire.Fixed32Type:
		s.skip = 4
	case protowire.StartGroupType, protowire.EndGroupType: // they have no length, and proto3 has none
	}
	s.pass(n)
	return n
}

// field takes a number, or a length, with so much of the message after it.
func (s *skimmer) field(number protowire.Number, inner bool, value uint64, left int) {
	switch in := s.left; {
	case in > s.changesEnd && s.crossing && number == crossingAfter:
		s.found.after = value
	case in > s.changesEnd && s.crossing:
		if number == crossingBase {
			s.found.base = value
		}
		s.skip = left - s.changesEnd // it is the second field
	case in > s.changesEnd:
		if number == changesFrom {
			s.found.from = value
		}
		s.skip = left - s.changesEnd // it is the first field, or is not there
	case in > s.updateEnd:
		s.updateField(number, inner, value, left)
	case inner && number == responseUpdate:
		s.updateEnd, s.changesEnd = left-int(value), left
	case inner:
		s.skip = int(value)
	}
}

func (s *skimmer) updateField(number protowire.Number, inner bool, value uint64, left int) {
	switch number { //nolint:exhaustive // others do not matter
	case updateEcho:
		s.found.echo = value
	case updateLSN:
		s.found.lsn = value
	case updateAge:
		s.found.age = time.Duration(value)
	case updateChanges:
		s.found.changes = true
		s.changesEnd, s.crossing = left-int(value), false
		return
	case updateCrossing:
		s.changesEnd, s.crossing = left-int(value), true
		return
	case updateTable:
		s.found.table = true
	}
	if inner {
		s.skip = int(value)
	}
}

// pass goes on in the message, perhaps to its end.
func (s *skimmer) pass(n int) {
	s.left -= n
	if s.left == 0 {
		s.hear(s.found)
	}
}
