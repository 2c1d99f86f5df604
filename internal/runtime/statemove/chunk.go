package statemove

import (
	"encoding/binary"
	"iter"

	"github.com/cespare/xxhash/v2"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A tally is what both ends count, to see at the end that they agree.
type tally struct {
	records, bytes uint64
	digest         xxhash.Digest
}

func newTally() tally {
	var t tally
	t.digest.Reset()
	return t
}

func (t *tally) add(record []byte) {
	t.records++
	t.bytes += uint64(len(record))
	var size [4]byte
	binary.LittleEndian.PutUint32(size[:], uint32(len(record)))
	_, _ = t.digest.Write(size[:]) // a digest takes everything
	_, _ = t.digest.Write(record)
}

func (t *tally) end(number uint64) *leaseholdv1.TransferEnd {
	return &leaseholdv1.TransferEnd{Number: number, Records: t.records, Bytes: t.bytes, Checksum: t.digest.Sum64()}
}

func (t *tally) check(e *leaseholdv1.TransferEnd) error {
	if e.GetRecords() == t.records && e.GetBytes() == t.bytes && e.GetChecksum() == t.digest.Sum64() {
		return nil
	}
	return leasehold.Errorf(opReceive, leasehold.ErrInternal, "",
		"the source has sent %d records of %d bytes with checksum %x, but %d of %d with %x have come",
		e.GetRecords(), e.GetBytes(), e.GetChecksum(), t.records, t.bytes, t.digest.Sum64())
}

type batch struct {
	data  []byte
	sizes []uint32
}

func (b *batch) room(record []byte) bool {
	return b.empty() || b.weight()+len(record)+perRecord <= fullChunk
}

// next returns an empty batch with room for as much as this one has: what comes
// is mostly like what came before, and need not be copied as the batch grows.
func (b *batch) next() batch {
	return batch{make([]byte, 0, min(len(b.data), fullChunk)), make([]uint32, 0, len(b.sizes))}
}

func (b *batch) add(record []byte) {
	b.data = append(b.data, record...)
	b.sizes = append(b.sizes, uint32(len(record)))
}

func (b *batch) empty() bool { return len(b.sizes) == 0 }

func (b *batch) weight() int { return len(b.data) + perRecord*len(b.sizes) }

// weight is what a chunk counts in the window; nil weighs nothing.
func weight(c *leaseholdv1.TransferChunk) int { return len(c.GetData()) + perRecord*len(c.GetSizes()) }

// checkChunk reports whether a chunk is one that our own end would send.
func checkChunk(c *leaseholdv1.TransferChunk) error {
	sizes, left := c.GetSizes(), uint64(len(c.GetData()))
	if n := len(sizes); n == 0 || n > 1 && weight(c) > maxChunk || left > MaxRecord {
		return leasehold.Errorf(opReceive, leasehold.ErrLimit, "", "a chunk has %d records of %d bytes", n, left)
	}
	sum := uint64(0) // of fewer numbers of 32 bits than could overflow it
	for _, size := range sizes {
		sum += uint64(size)
	}
	if sum != left {
		return leasehold.Errorf(opReceive, leasehold.ErrInvalid, "", "the sizes of a chunk's records do not sum up to its data")
	}
	return nil
}

// records are those of a chunk that was checked. They are parts of its data.
func records(c *leaseholdv1.TransferChunk) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		data := c.GetData()
		for _, size := range c.GetSizes() {
			if !yield(data[:size:size]) {
				return
			}
			data = data[size:]
		}
	}
}
