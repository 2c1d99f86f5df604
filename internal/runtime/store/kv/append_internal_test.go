package kv

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	"google.golang.org/protobuf/proto"
)

// No piece of a batch exceeds its size limit unless it has a single change, also with moves, which have two holders.
func TestPieceSizeIsLimited(t *testing.T) {
	const changes = 50
	wordy := func(i int) *table.Holder {
		return &table.Holder{
			Owner:   leasehold.OwnerID(fmt.Sprintf("%0*d", leasehold.MaxOwnerIDLen, i)),
			Session: leasehold.Session{byte(i), 1}, Weight: 1e-300,
			Addr: strings.Repeat("a", leasehold.MaxAddrLen), Process: strings.Repeat("p", leasehold.MaxAddrLen),
		}
	}
	all := leasehold.Range{Start: 1 << 63}
	for name, fill := range map[string]func(*table.Change, int){
		"grants":             func(c *table.Change, i int) { c.Kind, c.Holder = table.Granted, wordy(i) },
		"moves":              func(c *table.Change, i int) { c.Kind, c.Holder, c.From = table.Moved, wordy(2*i), wordy(2*i+1) },
		"moves to one owner": func(c *table.Change, i int) { c.Kind, c.Holder, c.From = table.Moved, wordy(0), wordy(i+1) },
	} {
		for _, piece := range []int{1000, 5000, 1 << 20} {
			t.Run(fmt.Sprintf("%s in %d bytes", name, piece), func(t *testing.T) {
				b := &storage.Batch{Namespace: "n", Term: 1 << 40, Prev: 1 << 60}
				for i := range changes {
					c := table.Change{LSN: b.Prev + leasehold.LSN(i) + 1, Range: all, Generation: 1<<62 + leasehold.Generation(i)}
					fill(&c, i)
					b.Changes = append(b.Changes, c)
				}
				k, err := keysOf(b.Namespace)
				if err != nil {
					t.Fatal(err)
				}
				s := &Store{piece: piece, now: time.Now}
				pieces, err := s.cutBatch(k, b)
				if err != nil {
					t.Fatal(err)
				}
				total := 0
				for i, e := range pieces {
					var got storagev1.Batch
					if err := proto.Unmarshal(e.Value, &got); err != nil {
						t.Fatal(err)
					}
					n := len(got.GetChanges().GetKinds())
					if total += n; len(e.Value) > piece && n > 1 {
						t.Errorf("piece %d of %d has %d bytes for %d changes, want at most %d", i, len(pieces), len(e.Value), n, piece)
					}
				}
				if total != changes {
					t.Errorf("the pieces have %d changes, want %d", total, changes)
				}
			})
		}
	}
}
