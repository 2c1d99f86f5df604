package leasemap

import (
	"encoding/binary"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A record is a name in a move to another server: the version of the format, the
// kind, the name and, for a value, its version, its remaining TTL
// and its encoding by the application.
type record struct {
	deleted bool
	name    string
	version Version
	left    time.Duration // remaining TTL; 0 if it does not expire
	value   []byte
}

const recordFormat = 1

// The kinds of records, in the second byte.
const (
	kindValue   = 0
	kindDeleted = 1
)

func appendName(dst []byte, kind byte, name string) []byte {
	dst = append(dst, recordFormat, kind)
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	return append(dst, name...)
}

func appendDeleted(dst []byte, name string) []byte { return appendName(dst, kindDeleted, name) }

func appendHead(dst []byte, name string, v Version, left time.Duration) []byte {
	dst = appendName(dst, kindValue, name)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(v.Generation))
	dst = binary.LittleEndian.AppendUint64(dst, v.Number)
	return binary.AppendUvarint(dst, uint64(max(0, left)))
}

// parseRecord parses a record. Its value is a slice of data.
func parseRecord(data []byte) (record, error) {
	bad := func(problem string) (record, error) {
		return record{}, leasehold.Errorf("import", leasehold.ErrInvalid, "", "a record of %d bytes %s", len(data), problem)
	}
	if len(data) < 2 || data[0] != recordFormat || data[1] > kindDeleted {
		return bad("has an unknown format")
	}
	r := record{deleted: data[1] == kindDeleted}
	rest := data[2:]
	n, size := binary.Uvarint(rest)
	if size <= 0 || n > uint64(len(rest)-size) {
		return bad("ends within its name")
	}
	r.name, rest = string(rest[size:size+int(n)]), rest[size+int(n):]
	if r.deleted {
		return r, nil
	}
	if len(rest) < 16 {
		return bad("ends within its version")
	}
	r.version = Version{leasehold.Generation(binary.LittleEndian.Uint64(rest)), binary.LittleEndian.Uint64(rest[8:])}
	left, size := binary.Uvarint(rest[16:])
	if size <= 0 || left > uint64(1<<62) {
		return bad("ends within its TTL")
	}
	r.left, r.value = time.Duration(left), rest[16+size:]
	return r, nil
}
