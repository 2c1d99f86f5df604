package statemove

import (
	"encoding/binary"
	"iter"

	"github.com/cespare/xxhash/v2"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A tally counts and checksums records, so that the target can verify that it has received all of them.
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
	_, _ = t.digest.Write(size[:]) // it never fails
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
		"state differs: the source has sent %d records of %d bytes with checksum %x, received were %d of %d with %x",
		e.GetRecords(), e.GetBytes(), e.GetChecksum(), t.records, t.bytes, t.digest.Sum64())
}

type batch struct {
	data  []byte
	sizes []uint32
}

func (b *batch) room(record []byte) bool {
	return b.empty() || b.weight()+len(record)+recordOverhead <= targetChunk
}

// next returns an empty batch with the capacity that this one has used: batches are mostly alike, so this
// avoids copies while the next one grows.
func (b *batch) next() batch {
	return batch{make([]byte, 0, min(len(b.data), targetChunk)), make([]uint32, 0, len(b.sizes))}
}

func (b *batch) add(record []byte) {
	b.data = append(b.data, record...)
	b.sizes = append(b.sizes, uint32(len(record)))
}

func (b *batch) empty() bool { return len(b.sizes) == 0 }

func (b *batch) weight() int { return len(b.data) + recordOverhead*len(b.sizes) }

// weight is the weight of a chunk in the window, 0 for nil.
func weight(c *leaseholdv1.TransferChunk) int {
	return len(c.GetData()) + recordOverhead*len(c.GetSizes())
}

// checkChunk checks the limits and sizes of a received chunk.
func checkChunk(c *leaseholdv1.TransferChunk) error {
	sizes, left := c.GetSizes(), uint64(len(c.GetData()))
	if n := len(sizes); n == 0 || n > 1 && weight(c) > maxChunk || left > MaxRecord {
		return leasehold.Errorf(opReceive, leasehold.ErrLimit, "", "chunk rejected: %d records of %d bytes exceed the limit", n, left)
	}
	sum := uint64(0) // it cannot overflow: the number of sizes is below 1<<32
	for _, size := range sizes {
		sum += uint64(size)
	}
	if sum != left {
		return leasehold.Errorf(opReceive, leasehold.ErrInvalid, "", "chunk rejected: the sizes of its records add up to %d bytes, its data has %d", sum, left)
	}
	return nil
}

// records returns the records of a checked chunk. They are parts of its data.
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
