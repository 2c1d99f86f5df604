package manager_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// moving is the part of a paperOwner that handles moves. The test plays its shell: a move makes progress only when
// the test reports it.
type moving struct {
	reports  []protocol.MoveReport
	imports  []protocol.Import
	parting  bool
	draining bool
	loads    *partition.Loads

	last *protocol.LeaseReply // newest reply
}

func (m *moving) fill(r *protocol.LeaseRequest) *protocol.LeaseRequest {
	if m != nil {
		r.Mover, r.Identity = r.Holder.Addr, "dns:"+string(r.Holder.Owner)
		r.Moves, r.Imports = slices.Clone(m.reports), slices.Clone(m.imports)
		r.Parting, r.Draining, r.Loads = m.parting, m.draining, m.loads
	}
	return r
}

func (m *moving) apply(r *protocol.LeaseReply) {
	if m != nil {
		m.last = r
	}
}

// A plan is a policy whose result the test sets. It stores its inputs.
type plan struct {
	want  func(partition.Input) (partition.Assignment, error)
	asked []partition.Input
}

func (*plan) Name() string  { return "plan" }
func (*plan) Partial() bool { return true }

func (p *plan) Assign(in partition.Input) (partition.Assignment, error) {
	p.asked = append(p.asked, in)
	return p.want(in)
}

// last returns the newest input.
func (p *plan) last() partition.Input { return p.asked[len(p.asked)-1] }

// give assigns whole bytes of the key space to owners: "aab" gives a the keys that start with 0x00 and 0x01, and b
// those from 0x02 on. A range for an owner that is no member stays where it is; "." means no owner.
func (p *plan) give(owners string) {
	p.want = func(in partition.Input) (partition.Assignment, error) {
		var a partition.Assignment
		for i, o := range owners {
			start := leasehold.Key(i) << 56
			owner := leasehold.OwnerID(o)
			if !takesPart(in, owner) && o != '.' && len(in.Current) > 0 {
				owner = in.Current.OwnerAt(start)
			}
			if !takesPart(in, owner) {
				owner = ""
			}
			a = a.Append(start, owner)
		}
		return a, nil
	}
}

func takesPart(in partition.Input, owner leasehold.OwnerID) bool {
	return slices.ContainsFunc(in.Members, func(m partition.Member) bool { return m.Owner == owner })
}

// cell returns the keys that start with the bytes from i up to j; 0 is the end.
func cell(i, j int) leasehold.Range {
	return leasehold.Range{Start: leasehold.Key(i) << 56, Limit: leasehold.Key(j) << 56}
}

// newMovingLeader returns a leader whose policy is the test's plan.
func newMovingLeader(t *testing.T, owners string, options ...func(*manager.Config)) (*paperLeader, *plan) {
	t.Helper()
	p := &plan{}
	p.give(owners)
	options = append([]func(*manager.Config){func(c *manager.Config) { c.Policy = p }}, options...)
	return newPaperLeader(t, options...), p
}

// mover adds an owner that can move state, and runs until nothing changes.
func (l *paperLeader) mover(name leasehold.OwnerID) *paperOwner {
	o := l.newcomer(name)
	o.moving = &moving{}
	o.greet()
	l.settle()
	return o
}

func (l *paperLeader) newcomer(name leasehold.OwnerID) *paperOwner {
	session := leasehold.Session{byte(len(l.owners) + 1)}
	o := &paperOwner{leader: l, holder: &table.Holder{
		Owner: name, Session: session, Addr: string(name), Weight: 1, DeathHash: tokenOf(session).Hash(),
	}}
	l.owners = append(l.owners, o)
	return o
}

// greet sends the first request, and acknowledges the reply.
func (o *paperOwner) greet() {
	o.send()
	o.read()
	o.send()
}

// replan makes the leader run its policy again.
func (l *paperLeader) replan() {
	l.step(manager.Order{Kind: manager.OrderRebalance})
	l.settle()
}

// renew lets owners send requests every few seconds, for a while.
func (l *paperLeader) renew(d time.Duration, active ...*paperOwner) {
	for range d / (5 * time.Second) {
		l.advance(5 * time.Second)
		l.settle()
		for _, o := range active {
			o.send()
			l.settle()
		}
	}
}

// departures returns the moves from the owner in its newest reply.
func (o *paperOwner) departures() []protocol.Departure { return o.moving.last.Departures }

// wantDepartures fails unless the owner is to send exactly these ranges.
func (o *paperOwner) wantDepartures(want ...leasehold.Range) {
	o.leader.t.Helper()
	var got []leasehold.Range
	for _, d := range o.departures() {
		got = append(got, d.Range)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		o.leader.t.Fatalf("departures of %s (-want +got):\n%s", o.holder.Owner, diff)
	}
}

// reports adds the state of a move to every request from now on.
func (o *paperOwner) reports(d protocol.Departure, s protocol.MoveState) {
	r := protocol.MoveReport{Ticket: d.Ticket, Range: d.Range, To: d.To, State: s}
	for _, l := range o.leases {
		if l.Range.Overlaps(d.Range) {
			r.Newest = max(r.Newest, l.Generation)
		}
	}
	o.moving.reports = slices.DeleteFunc(o.moving.reports, func(old protocol.MoveReport) bool { return old.Ticket == d.Ticket })
	o.moving.reports = append(o.moving.reports, r)
}

// releases drops the leases in a range.
func (o *paperOwner) releases(r leasehold.Range) {
	var gone []leasehold.Lease
	for _, l := range o.leases {
		if part, ok := l.Range.Intersect(r); ok {
			gone = append(gone, leasehold.Lease{Range: part, Generation: l.Generation})
		}
	}
	o.leases = protocol.Missing(o.leases, gone)
}

// completes completes a move: the source releases the range and reports it.
func (o *paperOwner) completes(d protocol.Departure) {
	o.reports(d, protocol.MoveDone)
	o.releases(d.Range)
	o.send()
}

// stopsReporting removes the reports, as a source does after the leader's acknowledgement.
func (o *paperOwner) stopsReporting() { o.moving.reports = nil }

// changesSince returns the kinds of changes that were recorded after the first n.
func (l *paperLeader) changesSince(n int) []string {
	names := map[table.Kind]string{table.Granted: "granted", table.Vacated: "lost", table.Moved: "moved"}
	var out []string
	for _, c := range l.log[n:] {
		out = append(out, names[c.Kind])
	}
	return out
}

func (l *paperLeader) wantChanges(since int, want ...string) {
	l.t.Helper()
	if diff := cmp.Diff(want, l.changesSince(since), cmpopts.EquateEmpty()); diff != "" {
		l.t.Fatalf("recorded changes (-want +got):\n%s\n%v", diff, l.log[since:])
	}
}

func (l *paperLeader) noted(what manager.Notable) int {
	n := 0
	for _, w := range l.notes {
		if w == what {
			n++
		}
	}
	return n
}
