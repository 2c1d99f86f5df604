package keyrange_test

import (
	"encoding/binary"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// A write is encoded as value and range in 17 bytes, so that the fuzzer can reach any boundary by
// changing bits.
const writeLen = 17

// maxWrites bounds the cost of the quadratic models.
const maxWrites = 32

func encode(ws ...write) []byte {
	var out []byte
	for _, w := range ws {
		out = append(out, w.v)
		out = binary.BigEndian.AppendUint64(out, uint64(w.r.Start))
		out = binary.BigEndian.AppendUint64(out, uint64(w.r.Limit))
	}
	return out
}

func decode(data []byte) history {
	var h history
	for ; len(data) >= writeLen && len(h) < maxWrites; data = data[writeLen:] {
		h = append(h, write{v: data[0], r: leasehold.Range{
			Start: leasehold.Key(binary.BigEndian.Uint64(data[1:])),
			Limit: leasehold.Key(binary.BigEndian.Uint64(data[9:])),
		}})
	}
	return h
}

// corpus has the edge cases: the ends of the key space, and ranges that are adjacent, nested,
// repeated, total or empty.
var corpus = []history{
	{},
	{{leasehold.All, 1}},
	{{leasehold.Range{Start: 0, Limit: 1}, 1}, {leasehold.Range{Start: lastKey}, 1}},
	{{leasehold.Range{Start: lastKey - 1, Limit: lastKey}, 1}, {leasehold.Range{Start: lastKey}, 1}, {leasehold.All, 0}},
	{{leasehold.Range{Start: 10, Limit: 20}, 1}, {leasehold.Range{Start: 20, Limit: 30}, 1}, {leasehold.Range{Start: 15, Limit: 25}, 0}},
	{{leasehold.Range{Start: 10, Limit: 20}, 1}, {leasehold.Range{Start: 30, Limit: 40}, 1}, {leasehold.Range{Start: 20, Limit: 30}, 1}},
	{{leasehold.Range{Start: 10, Limit: 40}, 1}, {leasehold.Range{Start: 20, Limit: 30}, 2}, {leasehold.Range{Start: 20, Limit: 30}, 1}},
	{{leasehold.Range{Start: 20, Limit: 20}, 1}, {leasehold.Range{Start: 30, Limit: 10}, 1}, {leasehold.Range{Start: lastKey, Limit: 1}, 2}},
}

func FuzzMap(f *testing.F) {
	for _, h := range corpus {
		f.Add(encode(h...))
	}
	f.Fuzz(func(t *testing.T, data []byte) { exerciseMap(t, decode(data)) })
}

// FuzzSet splits the ranges of the writes into two sets: those with odd values, and the others.
func FuzzSet(f *testing.F) {
	for _, h := range corpus {
		f.Add(encode(h...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var a, b []leasehold.Range
		for _, w := range decode(data) {
			if w.v%2 == 1 {
				a = append(a, w.r)
			} else {
				b = append(b, w.r)
			}
		}
		exerciseSet(t, a, b)
	})
}
