package lookup_test

// These tests check the lookup's machine against the papers' description of the Lookup
// library: Centrifuge 2.2 and 2.2.1, and PRS 4.2. Each is named after the
// sentence that it checks.

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A paperLookup is a lookup; the test takes the role of its manager.
type paperLookup struct {
	t       *testing.T
	machine *lookup.Machine
	now     mono.Instant
	wake    mono.Instant

	sent   []lookup.Send
	losses []leasehold.Loss
}

func newPaperLookup(t *testing.T) *paperLookup {
	t.Helper()
	l := &paperLookup{t: t, now: mono.Instant(time.Hour)}
	var err error
	l.machine, err = lookup.New(l.now, lookup.Config{
		Namespace: "paper", ID: 7, Poll: 30 * time.Second, Stale: 2 * time.Minute, Rand: rand.New(rand.NewPCG(5, 6)),
		ConservativeRecovery: true, // as in the papers
	})
	if err != nil {
		t.Fatal(err)
	}
	l.did(l.machine.Advance(l.now))
	return l
}

// at returns a lookup that has just received this table.
func at(t *testing.T, tbl *table.Table) *paperLookup {
	t.Helper()
	l := newPaperLookup(t)
	l.receive(l.answer(tbl.LSN(), func(r *protocol.LookupReply) { r.Snapshot = tbl }))
	return l
}

func (l *paperLookup) did(actions []lookup.Action, wake mono.Instant) {
	l.wake = wake
	for _, a := range actions {
		switch a := a.(type) {
		case lookup.Send:
			l.sent = append(l.sent, a)
		case lookup.Losses:
			l.losses = append(l.losses, a.Losses...)
		}
	}
}

func (l *paperLookup) untilNextSend() *protocol.LookupRequest {
	l.t.Helper()
	n := len(l.sent)
	for range 100 {
		l.now = l.wake
		l.did(l.machine.Advance(l.now))
		if len(l.sent) > n {
			return l.newest()
		}
	}
	l.t.Fatal("no request after 100 wakes")
	return nil
}

func (l *paperLookup) newest() *protocol.LookupRequest { return l.sent[len(l.sent)-1].Request }

// answer returns a manager's reply to the newest request.
func (l *paperLookup) answer(lsn leasehold.LSN, fill func(*protocol.LookupReply)) *protocol.LookupReply {
	r := &protocol.LookupReply{Namespace: "paper", Leader: "m", Term: 1, Echo: l.newest().Seq, LSN: lsn}
	fill(r)
	return r
}

func (l *paperLookup) receive(r *protocol.LookupReply) {
	l.did(l.machine.Step(l.now, lookup.Reply{LookupReply: r}))
}

// changes fills a reply with the changes after LSN from.
func changes(from leasehold.LSN, cs ...table.Change) func(*protocol.LookupReply) {
	return func(r *protocol.LookupReply) { r.From, r.Changes = from, cs }
}

func (l *paperLookup) wantTable(want *table.Table) {
	l.t.Helper()
	if diff := cmp.Diff(rows(want), rows(l.machine.Table())); diff != "" {
		l.t.Errorf("table (-manager's +lookup's):\n%s", diff)
	}
}

// rows formats a table.
func rows(t *table.Table) []string {
	out := []string{fmt.Sprintf("LSN %d, newest generation %d", t.LSN(), t.Newest())}
	for r, e := range t.All() {
		out = append(out, fmt.Sprintf("%v: %v, generation %d, lost at LSN %d", r, e.Holder, e.Generation, e.Lost))
	}
	return out
}

var paperHolders = map[leasehold.OwnerID]*table.Holder{
	"A": {Owner: "A", Session: leasehold.Session{1}, Addr: "a:1", Weight: 1},
	"B": {Owner: "B", Session: leasehold.Session{2}, Addr: "b:1", Weight: 1},
	"C": {Owner: "C", Session: leasehold.Session{3}, Addr: "c:1", Weight: 1},
}

func span(start, limit leasehold.Key) leasehold.Range {
	return leasehold.Range{Start: start, Limit: limit}
}

func granted(lsn leasehold.LSN, r leasehold.Range, g leasehold.Generation, to leasehold.OwnerID) table.Change {
	return table.Change{LSN: lsn, Kind: table.Granted, Range: r, Generation: g, Holder: paperHolders[to]}
}

func vacated(lsn leasehold.LSN, r leasehold.Range, g leasehold.Generation, from leasehold.OwnerID) table.Change {
	return table.Change{LSN: lsn, Kind: table.Vacated, Range: r, Generation: g, Holder: paperHolders[from], Cause: leasehold.CauseReleased}
}

func apply(t *testing.T, tbl *table.Table, cs ...table.Change) *table.Table {
	t.Helper()
	next := tbl.Clone()
	for i := range cs {
		if err := next.Apply(&cs[i]); err != nil {
			t.Fatal(err)
		}
	}
	return next
}

// figure4 is the table of Centrifuge's figure 4 at LSN 2, and the changes that
// lead from there to its right side.
func figure4(t *testing.T) (*table.Table, []table.Change) {
	t.Helper()
	before := apply(t, table.New(),
		granted(1, span(0, 1), 14, "A"),
		granted(2, span(1, 9), 15, "B"),
	)
	return before, []table.Change{
		vacated(3, span(2, 9), 15, "B"),
		granted(4, span(2, 9), 16, "C"),
	}
}

// Centrifuge 2.2: a lookup has a complete copy of the lease table: for every
// range the generation and the owner.
func TestPaperLookupHasACompleteCopy(t *testing.T) {
	before, _ := figure4(t)
	l := at(t, before)
	l.wantTable(before)
}

// Centrifuge 2.2: the copy may be stale. Without a manager the lookup keeps using
// it.
func TestPaperLookupAnswersFromAStaleTable(t *testing.T) {
	before, _ := figure4(t)
	l := at(t, before)
	for range 100 {
		l.untilNextSend() // without a reply
	}
	l.wantTable(before)
}

// Centrifuge 2.2.1, PRS 4.2: a lookup contacts the manager every 30 seconds. Here the interval is up to an
// eighth shorter, so that lookups do not send at the same time.
func TestPaperLookupAsksEvery30Seconds(t *testing.T) {
	before, _ := figure4(t)
	l := at(t, before)
	last := l.now
	for range 20 {
		if r := l.untilNextSend(); r.LSN != 2 {
			t.Fatalf("request with LSN %d, want 2", r.LSN)
		}
		if gap := l.now.Sub(last); gap > 30*time.Second || gap < 30*time.Second*7/8 {
			t.Errorf("%v between two requests, want 30 s or up to an eighth less", gap)
		}
		last = l.now
		l.receive(l.answer(2, func(*protocol.LookupReply) {}))
	}
}

// Centrifuge 2.2.1, figure 4: the lookup sends LSN 2, receives the changes since then, and applies them to its
// copy.
func TestPaperLookupAppliesChanges(t *testing.T) {
	before, cs := figure4(t)
	l := at(t, before)
	l.untilNextSend()
	l.receive(l.answer(4, changes(2, cs...)))
	l.wantTable(apply(t, before, cs...))
	if r := l.untilNextSend(); r.LSN != 4 {
		t.Errorf("next request with LSN %d, want 4", r.LSN)
	}
}

// PRS 4.2: changes are applied in order, each exactly once, even if messages are lost, duplicated or
// reordered.
func TestPaperLookupAppliesChangesInOrder(t *testing.T) {
	before, cs := figure4(t)
	after := apply(t, before, cs...)
	l := at(t, before)
	l.receive(l.answer(4, changes(3, cs[1:]...)))
	l.wantTable(before) // the second without the first
	l.receive(l.answer(4, changes(2, cs...)))
	l.wantTable(after)
	l.receive(l.answer(3, changes(2, cs[:1]...)))
	l.wantTable(after) // the first one, delayed
	l.receive(l.answer(4, changes(2, cs...)))
	l.wantTable(after) // both, duplicated
	l.receive(l.answer(2, func(r *protocol.LookupReply) { r.Snapshot = before }))
	l.wantTable(after) // an older snapshot
	if len(l.losses) != 1 {
		t.Errorf("%d losses, want one: %v", len(l.losses), l.losses)
	}
}

// Centrifuge 2.2: when the generation of a range changes, the lookup signals a loss of exactly that
// range.
func TestPaperLookupSignalsALossWhenAGenerationChanges(t *testing.T) {
	before, cs := figure4(t)
	l := at(t, before)
	l.receive(l.answer(4, changes(2, cs...)))
	want := []leasehold.Loss{{Range: span(2, 9), Owner: "B", Generation: 15, Cause: leasehold.CauseReleased, LSN: 3}}
	if diff := cmp.Diff(want, l.losses); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}
}

// PRS 4.2: a lookup that gets a snapshot compares it with its own table, and
// signals a loss for every range whose generation has changed.
func TestPaperLookupFindsLossesInASnapshot(t *testing.T) {
	before, cs := figure4(t)
	after := apply(t, before, cs...)
	l := at(t, before)
	l.receive(l.answer(4, func(r *protocol.LookupReply) { r.Snapshot = after }))
	l.wantTable(after)
	want := []leasehold.Loss{{Range: span(2, 9), Owner: "B", Generation: 15, LSN: 3}}
	if diff := cmp.Diff(want, l.losses); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}
}

// PRS 4.2: changes and snapshots give the same guarantee. For any history, a lookup that receives a snapshot reports
// every range that a lookup with all changes reports, and no range without changes.
func TestPaperSnapshotMissesNoLoss(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	missed := 0
	for range 200 {
		history := newHistory(random)
		history.run(random.IntN(20))
		before := history.table.Clone()
		history.changes = nil
		history.run(1 + random.IntN(20))

		byLog, byTable := at(t, before), at(t, before)
		byLog.receive(byLog.answer(history.table.LSN(), changes(before.LSN(), history.changes...)))
		byTable.receive(byTable.answer(history.table.LSN(), func(r *protocol.LookupReply) { r.Snapshot = history.table }))
		byTable.wantTable(byLog.machine.Table())

		var touched []leasehold.Range
		for i := range history.changes {
			touched = append(touched, history.changes[i].Range)
		}
		byChanges, bySnapshot := lost(byLog), lost(byTable)
		if gap := byChanges.Subtract(bySnapshot); len(gap) > 0 {
			t.Fatalf("the loss of %v is found in the changes, and not in the snapshot", gap)
		}
		if extra := bySnapshot.Subtract(keyrange.NewSet(touched...)); len(extra) > 0 {
			t.Fatalf("the loss of %v is found in the snapshot, and the range has not changed", extra)
		}
		if len(byLog.losses) > 0 {
			missed++
		}
	}
	if missed < 100 {
		t.Errorf("only %d of 200 histories have losses", missed)
	}
}

func lost(l *paperLookup) keyrange.Set {
	var ranges []leasehold.Range
	for _, loss := range l.losses {
		ranges = append(ranges, loss.Range)
	}
	return keyrange.NewSet(ranges...)
}

// A history generates a sequence of changes of 16 keys.
type history struct {
	random  *rand.Rand
	table   *table.Table
	changes []table.Change
}

func newHistory(random *rand.Rand) *history { return &history{random: random, table: table.New()} }

func (h *history) run(steps int) {
	for range steps {
		start := leasehold.Key(h.random.IntN(16))
		r := span(start, start+1+leasehold.Key(h.random.IntN(int(16-start))))
		at, e := h.table.At(start)
		r, _ = r.Intersect(at)
		c := granted(h.table.LSN()+1, r, h.table.Newest()+1, []leasehold.OwnerID{"A", "B", "C"}[h.random.IntN(3)])
		if !e.Vacant() {
			c = vacated(h.table.LSN()+1, r, e.Generation, e.Holder.Owner)
		}
		if err := h.table.Apply(&c); err != nil {
			panic(err)
		}
		h.changes = append(h.changes, c)
	}
}

// PRS 4.2: messages carry the manager's nonce, so that lookups drop stale messages of a crashed
// manager. Here the nonce is the leader's term.
func TestPaperLookupDropsMessagesOfAnEarlierLeader(t *testing.T) {
	before, cs := figure4(t)
	l := at(t, before)
	l.receive(l.answer(2, func(r *protocol.LookupReply) { r.Leader, r.Term = "n", 2 }))
	l.receive(l.answer(4, changes(2, cs...))) // of term 1
	l.wantTable(before)
	if len(l.losses) > 0 {
		t.Errorf("losses in a reply of an earlier leader: %v", l.losses)
	}
}

// Centrifuge 2.1.1: lookups, like owners, send to all managers if the leader does not respond, and
// only to the leader after a reply.
func TestPaperLookupAsksAllManagersWhileTheLeaderIsUnresponsive(t *testing.T) {
	before, _ := figure4(t)
	l := at(t, before)
	var to []string
	for range 2 {
		l.untilNextSend()
		to = append(to, string(l.sent[len(l.sent)-1].To))
	}
	l.receive(l.answer(2, func(r *protocol.LookupReply) { r.Leader = "n" }))
	l.untilNextSend()
	to = append(to, string(l.sent[len(l.sent)-1].To))
	if diff := cmp.Diff([]string{"m", "", "n"}, to); diff != "" {
		t.Errorf("receivers (-want +got):\n%s", diff)
	}
}

// Centrifuge 2.1.2: each pool of servers has its own namespace and table. Messages of one do not affect the
// other.
func TestPaperLookupDropsMessagesForAnotherNamespace(t *testing.T) {
	before, cs := figure4(t)
	l := at(t, before)
	r := l.answer(4, changes(2, cs...))
	r.Namespace = "other"
	l.receive(r)
	l.wantTable(before)
}

// PRS 4.2 guarantees that every loss is signalled. The guarantee is conservative
// (2.1): "if the frontend's Lookup library loses contact with the Manager, recovery
// notifications will be delivered on all ranges". A reply proves the state at the sending of its request. Only for a
// reply to the newest request that time is certain.
func TestPaperLookupWithoutContactReportsEverything(t *testing.T) {
	before, _ := figure4(t)
	current := func(*protocol.LookupReply) {}
	l := at(t, before)
	l.untilNextSend()
	asked := l.now
	l.now = l.now.Add(400 * time.Millisecond)
	l.receive(l.answer(2, current))
	l.untilNextSend()
	late := l.answer(2, current)
	l.untilNextSend()
	l.receive(late)                                                                    // to the previous request
	l.receive(&protocol.LookupReply{Namespace: "paper", Leader: "m", Term: 1, LSN: 2}) // unsolicited
	for range 100 {
		if l.now = l.wake; len(l.losses) > 0 {
			break
		}
		l.did(l.machine.Advance(l.now))
		if len(l.losses) > 0 && l.now.Sub(asked) != 2*time.Minute {
			t.Errorf("the whole key space is reported as lost %v after the request, want 2m", l.now.Sub(asked))
		}
	}
	want := []leasehold.Loss{{Range: leasehold.All, Cause: leasehold.CauseContact, LSN: 2}}
	if diff := cmp.Diff(want, l.losses); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}
}

// The same applies to a lookup whose clock stood still for an unknown time.
func TestPaperLookupThatSleptReportsEverything(t *testing.T) {
	before, _ := figure4(t)
	l := at(t, before)
	l.did(l.machine.Step(l.now, lookup.Slept{}))
	want := []leasehold.Loss{{Range: leasehold.All, Cause: leasehold.CauseContact, LSN: 2}}
	if diff := cmp.Diff(want, l.losses); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}
	l.wantTable(before)
}
