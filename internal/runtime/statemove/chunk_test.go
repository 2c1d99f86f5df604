package statemove

import (
	"testing"

	"google.golang.org/protobuf/proto"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A full batch fits into a buffer of 32 KiB for every record size, and the next batch has enough capacity from the
// start.
func TestFullChunksFitIntoABuffer(t *testing.T) {
	for _, size := range []int{0, 1, 20, 127, 128, 216, 4096, 16<<10 - 1, targetChunk - recordOverhead} {
		record := make([]byte, size)
		var b batch
		for range 2 {
			for b.room(record) {
				b.add(record)
			}
			chunk := &leaseholdv1.TransferChunk{Number: 1 << 62, Data: b.data, Sizes: b.sizes}
			message := &leaseholdv1.TransferRequest{Kind: &leaseholdv1.TransferRequest_Chunk{Chunk: chunk}}
			if n := proto.Size(message); n > 32<<10 || b.weight() <= targetChunk-size-recordOverhead {
				t.Errorf("%d records of %d bytes take %d", len(b.sizes), size, n)
			}
			before := b
			b = b.next()
			if cap(b.data) < len(before.data) || cap(b.sizes) < len(before.sizes) || !b.empty() {
				t.Errorf("capacity after %d records of %d bytes: %d of %d", len(before.sizes), size, cap(b.sizes), cap(b.data))
			}
		}
	}
}

// A long record does not increase the capacity of the next batch.
func TestLongRecordsKeepNoCapacity(t *testing.T) {
	var b batch
	b.add(make([]byte, MaxRecord))
	if next := b.next(); cap(next.data) > 32<<10 {
		t.Errorf("capacity of %d bytes", cap(next.data))
	}
}
