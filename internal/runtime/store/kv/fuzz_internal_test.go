package kv

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
)

// The fuzz targets read a store with damaged values. The result is a table, or an error with the key of the damaged
// value.

// A damaged view has arbitrary values.
type damaged map[string][]byte

func (d damaged) Get(_ context.Context, keys ...string) ([]Entry, error) {
	var out []Entry
	for _, k := range keys {
		e := Entry{Key: k}
		if v, ok := d[k]; ok {
			e.Value, e.Revision = v, 1
		}
		out = append(out, e)
	}
	return out, nil
}

func (d damaged) Scan(_ context.Context, span Span, each func(Entry) error) error {
	for _, k := range slices.Sorted(maps.Keys(d)) {
		if k < span.From || k >= span.To {
			continue
		}
		if err := each(Entry{Key: k, Value: d[k], Revision: 1}); err != nil {
			return err
		}
	}
	return nil
}

func mustMarshal(f *testing.F, m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// story returns a table and its changes.
func story(f *testing.F) (*table.Table, []table.Change) {
	ann := &table.Holder{Owner: "ann", Session: leasehold.Session{1}, Addr: "a:1", Weight: 1}
	changes := []table.Change{
		{LSN: 1, Kind: table.Granted, Range: leasehold.Range{Limit: 1 << 63}, Generation: 1, Holder: ann},
		{LSN: 2, Kind: table.Vacated, Range: leasehold.Range{Start: 7, Limit: 9}, Generation: 1, Holder: ann, Cause: leasehold.CauseReleased},
	}
	t := table.New()
	for i := range changes {
		if err := t.Apply(&changes[i]); err != nil {
			f.Fatal(err)
		}
	}
	return t, changes
}

func FuzzLoad(f *testing.F) {
	snapshot, changes := story(f)
	head := mustMarshal(f, &storagev1.Head{End: 3, Snapshot: 2, Pieces: 1})
	piece := mustMarshal(f, &storagev1.Piece{Data: mustMarshal(f, wire.FromTable(snapshot))})
	next := table.Change{LSN: 3, Kind: table.Granted, Range: leasehold.Range{Start: 7, Limit: 9}, Generation: 2, Holder: changes[0].Holder}
	log := mustMarshal(f, &storagev1.Batch{Changes: wire.FromChanges(3, []table.Change{next})})
	f.Add([]byte("7"), head, piece, log, uint64(3))
	f.Add([]byte("7"), mustMarshal(f, &storagev1.Head{End: 2}), []byte{}, mustMarshal(f, &storagev1.Batch{Changes: wire.FromChanges(1, changes)}), uint64(1))
	f.Add([]byte("-1"), mustMarshal(f, &storagev1.Head{End: 1<<64 - 1, Snapshot: 1<<64 - 2, Pieces: 1<<32 - 1, Forgotten: 1 << 63}), piece, log, uint64(1<<64-1))
	f.Fuzz(func(t *testing.T, term, head, piece, log []byte, at uint64) {
		k, err := keysOf("n")
		if err != nil {
			t.Fatal(err)
		}
		d := damaged{termKey: term, k.head(): head, k.log(leasehold.LSN(at)): log}
		if h, err := decodeHead(Entry{Value: head}); err == nil {
			d[k.piece(h.snapshot, 0)] = piece
		}
		state, err := load(t.Context(), d, k)
		if err != nil {
			checkCorrupt(t, err)
			return
		}
		if got, err := state.Replay(); err == nil && got.LSN() != state.End() {
			t.Fatalf("the table has lsn %d, the log ends at %d", got.LSN(), state.End())
		}
		past, err := history(t.Context(), d, k, 0, 100)
		if err != nil {
			checkCorrupt(t, err)
		}
		for i := range past[:max(0, len(past)-1)] {
			if past[i].Change.LSN != past[i+1].Change.LSN+1 {
				t.Fatalf("lsn %d after %d", past[i].Change.LSN, past[i+1].Change.LSN)
			}
		}
	})
}

func checkCorrupt(t *testing.T, err error) {
	t.Helper()
	if leasehold.KindOf(err) != leasehold.ErrInternal || !strings.Contains(err.Error(), "corrupt value") {
		t.Fatalf("kind %v: %v", leasehold.KindOf(err), err)
	}
}

func FuzzStoredRecord(f *testing.F) {
	e, err := encodeRecord(storage.Record{Term: 3, Leader: "m", Session: leasehold.Session{1}, Beat: 9, Wait: time.Second, Resigned: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(e.Value)
	f.Add([]byte("\x1a\x20" + strings.Repeat("s", 32))) // too long a session
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(Entry{Key: recordKey, Value: b, Revision: 5})
		if err != nil {
			checkCorrupt(t, err)
			return
		}
		e, err := encodeRecord(r)
		if err != nil {
			t.Fatal(err)
		}
		e.Revision = 5
		if again, err := decodeRecord(e); err != nil || again != r {
			t.Fatalf("%+v is read as %+v, %v", r, again, err)
		}
	})
}

func FuzzStoredCatalog(f *testing.F) {
	e, err := encodeCatalog(&storage.Catalog{Namespaces: []storage.Namespace{
		{Name: "a", Lease: time.Second, Drift: 1.2, Static: []storage.StaticSlot{{Start: 0, Owner: "o"}}}, {Name: "b", Deleted: true},
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(e.Value)
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeCatalog(Entry{Key: catalogKey, Value: b, Revision: 5})
		if err != nil {
			checkCorrupt(t, err)
			return
		}
		c.Find("a") // it may not be sorted
		e, err := encodeCatalog(c)
		if err != nil {
			t.Fatal(err)
		}
		e.Revision = 5
		again, err := decodeCatalog(e)
		if diff := cmp.Diff(c, again, cmpopts.EquateNaNs()); diff != "" || err != nil {
			t.Fatalf("%v (-read +again):\n%s", err, diff)
		}
	})
}

func FuzzStoredTerm(f *testing.F) {
	f.Add([]byte("7"))
	f.Add([]byte("+7"))
	f.Add([]byte("007"))
	f.Add([]byte("18446744073709551615"))
	f.Fuzz(func(t *testing.T, b []byte) {
		term, err := decodeTerm(Entry{Key: termKey, Value: b, Revision: 1})
		if err != nil {
			checkCorrupt(t, err)
			return
		}
		// Guards compare bytes: another encoding of the same term would never match.
		if string(encodeTerm(term)) != string(b) {
			t.Fatalf("%q is read as %d, which is encoded as %q", b, term, encodeTerm(term))
		}
	})
}
