package wire_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// limits are low enough for tests to reach them, and high enough for generated messages.
var limits = protocol.Limits{Leases: 16, Changes: 64, Ranges: 32}

// bounds are the ends of generated ranges: few, so that ranges overlap.
var bounds = []leasehold.Key{0, 1, 2, 3, 1 << 63, 1<<64 - 2, 1<<64 - 1}

// through encodes and decodes a message.
func through[M proto.Message](t testing.TB, m M) M {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := m.ProtoReflect().New().Interface().(M)
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A drawer generates parts of messages.
type drawer struct{ *rapid.T }

func (d drawer) bool(label string) bool { return rapid.Bool().Draw(d.T, label) }

func (d drawer) number(label string) uint64 { return rapid.Uint64().Draw(d.T, label) }

func (d drawer) namespace() leasehold.Namespace {
	return leasehold.Namespace(rapid.StringMatching(`[a-z0-9][a-z0-9._-]{0,20}`).Draw(d.T, "namespace"))
}

func (d drawer) manager() storage.ManagerID {
	return storage.ManagerID(rapid.StringMatching(`[a-z0-9.:]{0,30}`).Draw(d.T, "manager"))
}

func (d drawer) session() leasehold.Session {
	var s leasehold.Session
	copy(s[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(d.T, "session"))
	s[0] |= 1
	return s
}

func (d drawer) holder() *table.Holder {
	return &table.Holder{
		Owner:   leasehold.OwnerID(rapid.StringMatching(`[a-zäß世 ]{1,20}`).Draw(d.T, "owner")),
		Session: d.session(),
		Addr:    rapid.StringMatching(`[a-z]{1,20}:[0-9]{1,4}`).Draw(d.T, "addr"),
		Weight:  rapid.Float64Range(0.001, protocol.MaxWeight).Draw(d.T, "weight"),
		Process: rapid.StringMatching(`[a-z0-9/]{0,20}`).Draw(d.T, "process"),
	}
}

func (d drawer) optionalHolder() *table.Holder {
	if d.bool("holder?") {
		return d.holder()
	}
	return nil
}

// holders generates a few, some equal with different pointers.
func (d drawer) holders() []*table.Holder {
	out := []*table.Holder{d.holder(), d.holder(), d.holder()}
	twin := *out[0]
	return append(out, &twin)
}

func (d drawer) leases() []leasehold.Lease {
	out := []leasehold.Lease{}
	for i, start := range bounds {
		if !d.bool("lease?") {
			continue
		}
		r := leasehold.Range{Start: start}
		if i+1 < len(bounds) {
			r.Limit = bounds[i+1]
		}
		g := rapid.Uint64Range(1, 1<<63-1).Draw(d.T, "generation")
		out = append(out, leasehold.Lease{Range: r, Generation: leasehold.Generation(g)})
	}
	return out
}

func (d drawer) ticket() protocol.Ticket { return protocol.Ticket(d.session()) }

func (d drawer) keyRange() leasehold.Range {
	i := rapid.IntRange(0, len(bounds)-1).Draw(d.T, "start")
	r := leasehold.Range{Start: bounds[i]}
	if j := rapid.IntRange(i+1, len(bounds)).Draw(d.T, "limit"); j < len(bounds) {
		r.Limit = bounds[j]
	}
	return r
}

func (d drawer) rate() float64 { return rapid.Float64Range(0, partition.MaxRate).Draw(d.T, "rate") }

func (d drawer) loads() *partition.Loads {
	if !d.bool("loads?") {
		return nil
	}
	out := &partition.Loads{Cells: []partition.Cell{}, Hot: []partition.HotKey{}}
	for _, l := range d.leases() {
		out.Cells = append(out.Cells, partition.Cell{Range: l.Range, Rate: d.rate()})
	}
	for _, key := range bounds {
		if d.bool("hot?") {
			out.Hot = append(out.Hot, partition.HotKey{Key: key, Rate: d.rate()})
		}
	}
	return out
}

func (d drawer) moves() []protocol.MoveReport {
	var out []protocol.MoveReport
	last := uint8(protocol.MoveFailed)
	for range rapid.IntRange(0, 3).Draw(d.T, "moves") {
		out = append(out, protocol.MoveReport{
			Ticket: d.ticket(), Range: d.keyRange(), To: d.holder(),
			State:   protocol.MoveState(rapid.Uint8Range(uint8(protocol.MoveCopying), last).Draw(d.T, "state")),
			Records: d.number("records"), Bytes: d.number("bytes"), Newest: leasehold.Generation(d.number("newest")),
			Backing: leasehold.Term(d.number("backing")),
		})
		last = uint8(protocol.MoveStopped) // completed moves must not overlap
	}
	return out
}

func (d drawer) since() protocol.Since {
	return protocol.Since{
		LSN:    leasehold.LSN(rapid.Uint64().Draw(d.T, "lsn")),
		Newest: leasehold.Generation(rapid.Uint64().Draw(d.T, "newest")),
	}
}

func (d drawer) imports() []protocol.Import {
	var out []protocol.Import
	for range rapid.IntRange(0, 3).Draw(d.T, "imports") {
		out = append(out, protocol.Import{Ticket: d.ticket(), Range: d.keyRange(), Since: d.since(), Backing: leasehold.Term(d.number("backing"))})
	}
	return out
}

func (d drawer) departures() []protocol.Departure {
	var out []protocol.Departure
	for range rapid.IntRange(0, 3).Draw(d.T, "departures") {
		out = append(out, protocol.Departure{Ticket: d.ticket(), Range: d.keyRange(), To: d.holder(), Mover: "m:1", Identity: rapid.SampledFrom([]string{"", "spiffe://example.org/owner/a/b"}).Draw(d.T, "identity")})
	}
	return out
}

func (d drawer) arrivals() []protocol.Arrival {
	var out []protocol.Arrival
	for range rapid.IntRange(0, 3).Draw(d.T, "arrivals") {
		out = append(out, protocol.Arrival{Ticket: d.ticket(), Range: d.keyRange(), From: d.holder(), Since: d.since(), Identity: rapid.SampledFrom([]string{"", "dns:a.example.org"}).Draw(d.T, "identity")})
	}
	return out
}

// offers generates leases, some new with transferred state.
func (d drawer) offers() []protocol.Offer {
	out := []protocol.Offer{}
	for _, l := range d.leases() {
		o := protocol.Offer{Lease: l, Fresh: d.bool("fresh")}
		if o.Fresh && d.bool("ticket?") {
			o.Ticket = d.ticket()
		}
		out = append(out, o)
	}
	return out
}

func (d drawer) timing() protocol.Timing {
	lease := rapid.Int64Range(int64(protocol.MinLease), int64(protocol.MaxLease)).Draw(d.T, "lease")
	return protocol.Timing{
		Lease: time.Duration(lease),
		Renew: time.Duration(rapid.Int64Range(int64(protocol.MinRenew), lease/2).Draw(d.T, "renew")),
		Drift: mono.Drift(rapid.Float64Range(1, protocol.MaxDrift).Draw(d.T, "drift")),
	}
}

// history generates consecutive changes from the empty table on.
func (d drawer) history(n int) []table.Change {
	t, holders := table.New(), d.holders()
	var out []table.Change
	for range n {
		c := table.Change{LSN: t.LSN() + 1, Range: d.keyRange()}
		around, e := t.At(c.Range.Start)
		c.Range, _ = c.Range.Intersect(around)
		switch {
		case e.Vacant():
			c.Kind, c.Generation, c.Reason = table.Granted, t.Newest()+1, table.Reason(rapid.Uint8().Draw(d.T, "reason"))
			c.Holder = rapid.SampledFrom(holders).Draw(d.T, "holder")
		case d.bool("move?"):
			c.Kind, c.Generation, c.From = table.Moved, t.Newest()+1, e.Holder
			c.Holder = rapid.SampledFrom(holders).Draw(d.T, "holder")
		default:
			c.Kind, c.Generation, c.Holder = table.Vacated, e.Generation, e.Holder
			c.Cause = leasehold.Cause(rapid.Uint8().Draw(d.T, "cause"))
		}
		if err := t.Apply(&c); err != nil {
			d.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// tableAfter returns the table after changes.
func tableAfter(t rapid.TB, cs []table.Change) *table.Table {
	out := table.New()
	for i := range cs {
		if err := out.Apply(&cs[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// A row is a range of a table with all its fields, by value.
type row struct {
	Range leasehold.Range
	Gen   leasehold.Generation
	By    table.Holder
	Lost  leasehold.LSN
	Kept  leasehold.Generation
}

// contents returns the content of a table in a comparable form.
func contents(t *table.Table) any {
	if t == nil {
		return nil
	}
	var rows []row
	for r, e := range t.All() {
		line := row{Range: r, Gen: e.Generation, Lost: e.Lost, Kept: e.Adopted}
		if !e.Vacant() {
			line.By = *e.Holder
		}
		rows = append(rows, line)
	}
	return struct {
		LSN    leasehold.LSN
		Newest leasehold.Generation
		Rows   []row
	}{t.LSN(), t.Newest(), rows}
}
