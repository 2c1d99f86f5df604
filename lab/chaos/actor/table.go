package actor

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
	"github.com/leasehold-dev/leasehold/lookup"
)

// table describes the lease table as the lookup has it. It is false if the table
// changed while it was read: then there is another one to be described.
func (c *caller) table() (history.Table, bool) {
	sum := xxhash.New()
	var lsn leasehold.LSN
	for key := leasehold.Key(0); ; {
		p, _ := c.lookup.At(key)
		if key != 0 && p.LSN != lsn {
			return history.Table{}, false
		}
		lsn = p.LSN
		describe(sum, p)
		if key = p.Range.Limit; key == 0 {
			return history.Table{LSN: lsn, Hash: sum.Sum64()}, true
		}
	}
}

// describe adds a placement to a sum.
func describe(sum *xxhash.Digest, p lookup.Placement) {
	var numbers [24]byte
	binary.LittleEndian.PutUint64(numbers[0:], uint64(p.Range.Start))
	binary.LittleEndian.PutUint64(numbers[8:], uint64(p.Range.Limit))
	binary.LittleEndian.PutUint64(numbers[16:], uint64(p.Generation))
	_, _ = sum.Write(numbers[:]) // a sum takes everything
	_, _ = sum.Write(p.Session[:])
	_, _ = sum.WriteString(string(p.Owner) + "\x00" + p.Addr + "\x00")
}
