package leasemap

import (
	"encoding/binary"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A record is a name in a move to another server: the version of the format, the
// kind, the name and, for a value, its version, its remaining TTL
// and its encoding by the application.
//
// A server refuses an import with a format or kind that it does not have, and the source keeps the
// range. So new kinds cost no state during a rolling restart: kindSelect is newer than the others.
type record struct {
	deleted bool
	unsaved bool          // write-behind has not saved the value or the deletion
	stored  bool          // the source's store has the value
	age     time.Duration // of an unsaved change
	alarm   time.Time     // zero if there is none
	name    string
	version Version
	left    time.Duration // remaining TTL; 0 if it does not expire
	value   []byte
}

const (
	recordFormat = 1
	opImport     = "import"
)

// The kinds of records, in the second byte.
const (
	kindValue   = 0
	kindDeleted = 1
	kindSelect  = 2 // the name is the map of all later records, which is "" at first

	// Added to kindValue and kindDeleted of an unsaved change, whose age follows the name.
	kindUnsaved = 0x10
	// Added to kindValue of a value with an alarm, whose Unix time in microseconds follows.
	kindAlarm = 0x20
	// Added to kindValue of a value that the store has. Without it a server with a store saves the value.
	kindStored = 0x40
)

func appendName(dst []byte, kind byte, name string) []byte {
	dst = append(dst, recordFormat, kind)
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	return append(dst, name...)
}

func appendDeleted(dst []byte, name string) []byte { return appendName(dst, kindDeleted, name) }

func appendSelect(dst []byte, name string) []byte { return appendName(dst, kindSelect, name) }

func isSelect(data []byte) bool {
	return len(data) >= 2 && data[0] == recordFormat && data[1] == kindSelect
}

func parseSelect(data []byte) (name string, err error) {
	name, rest, ok := cutName(data[2:])
	if !ok || len(rest) > 0 || len(name) > maxMapName {
		return "", leasehold.Errorf(opImport, leasehold.ErrInvalid, "", "a record of %d bytes has no valid name of a map", len(data))
	}
	return name, nil
}

// cutName returns a name with its length in front, and what follows it.
func cutName(data []byte) (name string, rest []byte, ok bool) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(len(data)-size) {
		return "", nil, false
	}
	return string(data[size : size+int(n)]), data[size+int(n):], true
}

// appendUnsaved marks a record, which ends with its name, as that of an unsaved change.
func appendUnsaved(dst []byte, age time.Duration) []byte {
	dst[1] |= kindUnsaved
	return binary.AppendUvarint(dst, uint64(max(0, age)))
}

// appendAlarm adds an alarm to a record that ends before the version.
func appendAlarm(dst []byte, at time.Time) []byte {
	dst[1] |= kindAlarm
	return binary.AppendVarint(dst, at.UnixMicro())
}

func appendHead(dst []byte, name string, v Version, left time.Duration) []byte {
	return appendVersion(appendName(dst, kindValue, name), v, left)
}

func appendVersion(dst []byte, v Version, left time.Duration) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(v.Generation))
	dst = binary.LittleEndian.AppendUint64(dst, v.Number)
	return binary.AppendUvarint(dst, uint64(max(0, left)))
}

// parseRecord parses a record. Its value is a slice of data.
func parseRecord(data []byte) (record, error) {
	bad := func(problem string) (record, error) {
		return record{}, leasehold.Errorf(opImport, leasehold.ErrInvalid, "", "a record of %d bytes %s", len(data), problem)
	}
	if len(data) < 2 || data[0] != recordFormat || data[1]&^(kindUnsaved|kindAlarm|kindStored) > kindDeleted || data[1]&kindDeleted != 0 && data[1]&(kindAlarm|kindStored) != 0 {
		return bad("has an unknown format")
	}
	r := record{deleted: data[1]&kindDeleted != 0, unsaved: data[1]&kindUnsaved != 0, stored: data[1]&kindStored != 0}
	name, rest, ok := cutName(data[2:])
	if !ok {
		return bad("ends within its name")
	}
	if r.unsaved {
		if r.age, rest, ok = cutDuration(rest); !ok {
			return bad("ends within its age")
		}
	}
	if data[1]&kindAlarm != 0 {
		at, size := binary.Varint(rest)
		if size <= 0 {
			return bad("ends within its alarm")
		}
		r.alarm, rest = time.UnixMicro(at), rest[size:]
	}
	if r.name = name; r.deleted {
		return r, nil
	}
	if len(rest) < 16 {
		return bad("ends within its version")
	}
	r.version = Version{leasehold.Generation(binary.LittleEndian.Uint64(rest)), binary.LittleEndian.Uint64(rest[8:])}
	if r.left, r.value, ok = cutDuration(rest[16:]); !ok {
		return bad("ends within its TTL")
	}
	return r, nil
}

func cutDuration(data []byte) (d time.Duration, rest []byte, ok bool) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(1<<62) {
		return 0, nil, false
	}
	return time.Duration(n), data[size:], true
}
