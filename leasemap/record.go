package leasemap

import (
	"encoding/binary"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A record is a value on its way to another server: the number of its form, what it
// says, the name and, if there is a value, its version, for how much longer it lasts
// and the value as the application encodes it.
type record struct {
	deleted bool
	name    string
	version Version
	left    time.Duration // 0: for ever
	value   []byte
}

const recordForm = 1

// What the second byte says.
const (
	sayValue   = 0
	sayDeleted = 1
)

func appendName(dst []byte, say byte, name string) []byte {
	dst = append(dst, recordForm, say)
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	return append(dst, name...)
}

func appendDeleted(dst []byte, name string) []byte { return appendName(dst, sayDeleted, name) }

func appendHead(dst []byte, name string, v Version, left time.Duration) []byte {
	dst = appendName(dst, sayValue, name)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(v.Generation))
	dst = binary.LittleEndian.AppendUint64(dst, v.Number)
	return binary.AppendUvarint(dst, uint64(max(0, left)))
}

// parseRecord reads a record. Its value is a part of data.
func parseRecord(data []byte) (record, error) {
	bad := func(what string) (record, error) {
		return record{}, leasehold.Errorf("import", leasehold.ErrInvalid, "", "a record of %d bytes %s", len(data), what)
	}
	if len(data) < 2 || data[0] != recordForm || data[1] > sayDeleted {
		return bad("has a form that this version does not know")
	}
	r := record{deleted: data[1] == sayDeleted}
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
		return bad("ends within its time")
	}
	r.left, r.value = time.Duration(left), rest[16+size:]
	return r, nil
}
