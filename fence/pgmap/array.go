package pgmap

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/leasemap"
)

// columns returns the arguments of save: an array for each column.
func columns(batch []leasemap.Record) []any {
	var name, generation, numbers, version, value, ttl, alarm, key array
	for _, r := range batch {
		name.text(r.Name)
		generation.number(int64(r.Token.Generation)) //nolint:gosec // generations are less than 2^63
		numbers.number(number(r.Token))
		key.number(signed(r.Key))
		if r.Alarm.IsZero() {
			alarm.null()
		} else {
			alarm.text(r.Alarm.UTC().Format(time.RFC3339Nano))
		}
		if !r.Version.Exists() {
			version.null()
			value.null()
			ttl.number(0)
			continue
		}
		version.text(r.Version.String())
		value.bytes(r.Value)
		if r.TTL == 0 {
			ttl.null()
			continue
		}
		ttl.number(max(1, int64(r.TTL/time.Microsecond)))
	}
	return []any{name.String(), generation.String(), numbers.String(), version.String(), value.String(), ttl.String(), alarm.String(), key.String()}
}

// An array is the text of an array in PostgreSQL.
type array struct{ b strings.Builder }

func (a *array) next() *strings.Builder {
	separator := byte(',')
	if a.b.Len() == 0 {
		separator = '{'
	}
	a.b.WriteByte(separator)
	return &a.b
}

func (a *array) null() { a.next().WriteString("NULL") }

func (a *array) number(n int64) { a.next().WriteString(strconv.FormatInt(n, 10)) }

var quotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func (a *array) text(s string) {
	b := a.next()
	b.WriteByte('"')
	_, _ = quotes.WriteString(b, s) // a Builder does not fail
	b.WriteByte('"')
}

func (a *array) bytes(data []byte) {
	b := a.next()
	b.Grow(len(`"\\x"`) + 2*len(data))
	b.WriteString(`"\\x`)
	_, _ = hex.NewEncoder(b).Write(data) // a Builder does not fail
	b.WriteByte('"')
}

func (a *array) String() string {
	if a.b.Len() == 0 {
		return "{}"
	}
	return a.b.String() + "}"
}
