package changelog_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// FuzzTell: whatever a lookup says that it knows, and however much the log has forgotten, what it
// is told leads it to the table as it is, and one that knows more than there is is told nothing.
func FuzzTell(f *testing.F) {
	f.Add(uint64(10), 5, 20, int64(time.Second))
	f.Add(uint64(0), 5, 1, int64(0))
	f.Add(uint64(1<<64-1), 0, 0, int64(-1))
	f.Add(uint64(14), 9, 5, int64(time.Hour))
	f.Fuzz(func(t *testing.T, knows uint64, moves, most int, later int64) {
		k := newKeeper(most, time.Minute)
		tables := map[leasehold.LSN]*table.Table{k.table.LSN(): k.table.Clone()}
		for range min(max(moves, 0), 10) {
			k.move(second, 1)
			tables[k.table.LSN()] = k.table.Clone()
		}
		var reply protocol.LookupReply
		request := &protocol.LookupRequest{Namespace: "n", Seq: 1, LSN: leasehold.LSN(knows)}
		k.log.Tell(second+mono.Instant(max(later, 0)), request, k.table, k.table.Clone, &reply)
		got := tables[request.LSN]
		switch {
		case request.LSN > k.table.LSN() && (reply.Snapshot != nil || len(reply.Changes) > 0):
			t.Fatalf("a lookup at %d, which is yet to come, is told %d changes", knows, len(reply.Changes))
		case request.LSN >= k.table.LSN():
			return
		case reply.Snapshot != nil:
			got = reply.Snapshot
		case got == nil:
			t.Fatalf("a lookup at %d is told changes to a table that the log has never seen", knows)
		default:
			got = got.Clone()
			for i := range reply.Changes {
				if err := got.Apply(&reply.Changes[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got.LSN() != k.table.LSN() || got.Len() != k.table.Len() {
			t.Fatalf("a lookup at %d comes to %d with %d ranges, the table is at %d with %d", knows, got.LSN(), got.Len(), k.table.LSN(), k.table.Len())
		}
		if diff := cmp.Diff(k.table.LSN(), reply.LSN); diff != "" {
			t.Fatal(diff)
		}
	})
}
