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

// FuzzFillReply: for any LSN of a lookup and any truncation of the log, the reply leads the lookup
// to the current table. A lookup that is ahead of the table gets nothing.
func FuzzFillReply(f *testing.F) {
	f.Add(uint64(10), 5, 20, int64(time.Second))
	f.Add(uint64(0), 5, 1, int64(0))
	f.Add(uint64(1<<64-1), 0, 0, int64(-1))
	f.Add(uint64(14), 9, 5, int64(time.Hour))
	f.Fuzz(func(t *testing.T, lsn uint64, moves, most int, later int64) {
		k := newKeeper(most, time.Minute)
		tables := map[leasehold.LSN]*table.Table{k.table.LSN(): k.table.Clone()}
		for range min(max(moves, 0), 10) {
			k.move(second, 1)
			tables[k.table.LSN()] = k.table.Clone()
		}
		var reply protocol.LookupReply
		request := &protocol.LookupRequest{Namespace: "n", Seq: 1, LSN: leasehold.LSN(lsn)}
		k.log.FillReply(second+mono.Instant(max(later, 0)), request, k.table, k.table.Clone, &reply)
		got := tables[request.LSN]
		switch {
		case request.LSN > k.table.LSN() && (reply.Snapshot != nil || len(reply.Changes) > 0):
			t.Fatalf("a lookup at %d, ahead of the table, gets %d changes", lsn, len(reply.Changes))
		case request.LSN >= k.table.LSN():
			return
		case reply.Snapshot != nil:
			got = reply.Snapshot
		case got == nil:
			t.Fatalf("a lookup at %d gets changes to a table that the log has never had", lsn)
		default:
			got = got.Clone()
			for i := range reply.Changes {
				if err := got.Apply(&reply.Changes[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got.LSN() != k.table.LSN() || got.Len() != k.table.Len() {
			t.Fatalf("a lookup at %d arrives at %d with %d ranges, the table is at %d with %d", lsn, got.LSN(), got.Len(), k.table.LSN(), k.table.Len())
		}
		if diff := cmp.Diff(k.table.LSN(), reply.LSN); diff != "" {
			t.Fatal(diff)
		}
	})
}
