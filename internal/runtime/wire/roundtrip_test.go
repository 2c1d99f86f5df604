package wire_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"pgregory.net/rapid"
)

// compareTables compares tables by content.
var compareTables = cmp.Transformer("contents", contents)

// sameAfter reports an error unless got, the decoded value, equals want.
func sameAfter[M any](t *rapid.T, want, got M, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, compareTables); diff != "" {
		t.Fatalf("after the wire (-sent +received):\n%s", diff)
	}
}

func TestHolderRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := drawer{r}.holder()
		got, err := wire.ToHolder(through(t, wire.FromHolder(want)))
		sameAfter(r, want, got, err)
	})
}

func TestTableRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := tableAfter(r, drawer{r}.history(rapid.IntRange(0, 20).Draw(r, "changes")))
		got, err := wire.ToTable(through(t, wire.FromTable(want)), limits)
		sameAfter(r, want, got, err)
	})
}

func TestChangesRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		all := drawer{r}.history(20)
		from := rapid.IntRange(0, len(all)).Draw(r, "from")
		got, err := wire.ToChanges(through(t, wire.FromChanges(leasehold.LSN(from), all[from:])), limits)
		sameAfter(r, all[from:], got, err)
	})
}

func TestLeaseRequestRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := drawer{r}
		want := &protocol.LeaseRequest{
			Namespace: d.namespace(), Holder: d.holder(), Seq: protocol.Seq(d.number("seq") | 1),
			Term: leasehold.Term(rapid.Uint64Range(0, protocol.MaxTerm).Draw(r, "term")), Leases: d.leases(),
		}
		if want.Term > 0 {
			want.Heard = protocol.Seq(d.number("heard"))
			want.Applied = protocol.Seq(rapid.Uint64Range(0, uint64(want.Heard)).Draw(r, "applied"))
		}
		want.Leaving = len(want.Leases) == 0 && d.bool("leaving")
		want.Load, want.Loads = d.rate(), d.loads()
		want.Mover, want.Moves, want.Imports = rapid.SampledFrom([]string{"", "m:1"}).Draw(r, "mover"), d.moves(), d.imports()
		want.Parting, want.Draining = d.bool("parting"), d.bool("draining")
		if d.bool("gone?") {
			want.Gone = d.session()
			want.Gone[1] = want.Holder.Session[1] ^ 1 // another session
		}
		got, err := wire.ToLeaseRequest(through(t, wire.FromLeaseRequest(want)), limits)
		sameAfter(r, want, got, err)
	})
}

func TestLeaseReplyRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := drawer{r}
		want := &protocol.LeaseReply{
			Namespace: d.namespace(), Session: d.session(), Leader: d.manager(),
			Term: leasehold.Term(rapid.Uint64Range(1, protocol.MaxTerm).Draw(r, "term")),
			Seq:  protocol.Seq(d.number("seq") | 1), Echo: protocol.Seq(d.number("echo")), Timing: d.timing(),
			Offers: d.offers(), Clock: mono.Instant(rapid.Int64().Draw(r, "clock")),
			Incumbent: d.optionalHolder(), Contender: d.optionalHolder(), Goodbye: d.bool("goodbye"),
			Departures: d.departures(), Arrivals: d.arrivals(), Draining: d.bool("draining"), Idle: d.bool("idle"), Collecting: d.bool("collecting"),
			Refusal: leasehold.Kind(rapid.Uint8().Draw(r, "refusal")),
		}
		sent := through(t, wire.FromLeaseReply(want))
		got, err := wire.ToLeaseReply(sent.GetGrant(), limits)
		sameAfter(r, want, got, err)
		if sent.GetVersion() != wire.Version {
			t.Errorf("version %d, want %d", sent.GetVersion(), wire.Version)
		}
	})
}

func TestNotLeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := protocol.NotLeader{
			Term:   leasehold.Term(rapid.Uint64Range(0, protocol.MaxTerm).Draw(r, "term")),
			Leader: drawer{r}.manager(),
		}
		got, err := wire.ToNotLeader(through(t, wire.FromNotLeader(want)))
		sameAfter(r, want, got, err)
	})
}

func TestLookupRequestRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := drawer{r}
		want := &protocol.LookupRequest{
			Namespace: d.namespace(), Lookup: d.number("lookup"),
			Seq: protocol.Seq(d.number("seq") | 1), LSN: leasehold.LSN(d.number("lsn")), Crosses: d.bool("crosses"),
		}
		got, err := wire.ToLookupRequest(through(t, wire.FromLookupRequest(want)), want.Lookup)
		sameAfter(r, want, got, err)
	})
}

// drawLookupReply generates a reply with a table, changes, a crossing or nothing.
func drawLookupReply(r *rapid.T) *protocol.LookupReply {
	d := drawer{r}
	out := &protocol.LookupReply{
		Namespace: d.namespace(), Leader: d.manager(), Leads: rapid.Bool().Draw(r, "leads"),
		Term: leasehold.Term(rapid.Uint64Range(1, protocol.MaxTerm).Draw(r, "term")),
		Echo: protocol.Seq(d.number("echo")), LSN: leasehold.LSN(d.number("lsn")),
		Age: time.Duration(rapid.Int64Range(0, 1<<63-1).Draw(r, "age")),
	}
	all := d.history(rapid.IntRange(1, 20).Draw(r, "changes"))
	switch rapid.SampledFrom([]string{"table", "changes", "crossing", "no news"}).Draw(r, "news") {
	case "table":
		out.Snapshot = tableAfter(r, all)
		out.LSN = out.Snapshot.LSN()
	case "changes":
		from := rapid.IntRange(0, len(all)-1).Draw(r, "from")
		out.From, out.Changes, out.LSN = leasehold.LSN(from), all[from:], leasehold.LSN(len(all))
	case "crossing":
		before := tableAfter(r, all)
		out.LSN = before.LSN() + 1000
		out.Crossing = before.Crossing(before.Rebased(uint64(out.LSN), false, func(leasehold.Range, table.Entry) bool { return d.bool("held") }))
	}
	return out
}

func TestLookupReplyRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := drawLookupReply(r)
		got, err := wire.ToLookupReply(through(t, wire.FromLookupReply(want)).GetUpdate(), limits)
		sameAfter(r, want, got, err)
	})
}

// A table of a leader without a store survives encoding. It is rejected if some ranges lack the
// column.
func TestFoundTable(t *testing.T) {
	want := foundTable(t, walk()[0].Holder)
	m := wire.FromTable(want)
	got, err := wire.ToTable(through(t, m), limits)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(want), contents(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m.Adopted = m.Adopted[1:]
	if _, err := wire.ToTable(m, limits); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("a column that is too short: %v", err)
	}
	m.Adopted = []uint64{8, 0}
	if _, err := wire.ToTable(m, limits); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("a range found with a later generation than its own: %v", err)
	}
}
