package loadgen

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// An update is the fields of a FollowResponse that a lookup needs.
type update struct {
	echo, lsn, from uint64
	age             time.Duration
	changes, table  bool
	// after and base belong to a crossing; 0 without one.
	after, base uint64
}

// Its field numbers.
const (
	responseUpdate protowire.Number = 2
	updateEcho     protowire.Number = 4
	updateLSN      protowire.Number = 5
	updateAge      protowire.Number = 6
	updateChanges  protowire.Number = 7
	updateTable    protowire.Number = 8
	updateCrossing protowire.Number = 10
)

// parseUpdate parses a message: a sequence of updates, in which later fields replace earlier
// ones. It reads only what a lookup needs: the tables of thousands of lookups that connect at
// once are not decoded.
func parseUpdate(message []byte) (u update) {
	for len(message) > 0 {
		number, _, content, n := nextField(message)
		if n == 0 {
			return u
		}
		if number == responseUpdate {
			u.read(content)
		}
		message = message[n:]
	}
	return u
}

func (u *update) read(b []byte) {
	for len(b) > 0 {
		number, value, content, n := nextField(b)
		switch number { //nolint:exhaustive // others do not matter
		case updateEcho:
			u.echo = value
		case updateLSN:
			u.lsn = value
		case updateAge:
			u.age = time.Duration(value)
		case updateChanges:
			u.changes, u.from = true, Find(content, 1)
		case updateTable:
			u.table = true
		case updateCrossing:
			u.after, u.base = Find(content, 1), Find(content, 2)
		}
		if n == 0 {
			return
		}
		b = b[n:]
	}
}

// Find returns the number in the field at a path of nested fields; 0 if it is missing.
func Find(b []byte, path ...protowire.Number) (value uint64) {
	for _, want := range path {
		var (
			number  protowire.Number
			content []byte
			n       int
		)
		for number != want {
			b = b[n:]
			if number, value, content, n = nextField(b); n == 0 {
				return 0
			}
		}
		b = content
	}
	return value
}

// nextField parses the first field of b: its number, its value or content, and its length. The
// length is 0 if b does not begin with a field.
func nextField(b []byte) (number protowire.Number, value uint64, content []byte, length int) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return 0, 0, nil, 0
	}
	m := protowire.ConsumeFieldValue(number, kind, b[n:])
	switch {
	case m < 0:
		return 0, 0, nil, 0
	case kind == protowire.VarintType:
		value, _ = protowire.ConsumeVarint(b[n:])
	case kind == protowire.BytesType:
		content, _ = protowire.ConsumeBytes(b[n:])
	}
	return number, value, content, n + m
}
