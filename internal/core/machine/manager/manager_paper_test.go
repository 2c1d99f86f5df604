package manager_test

// These tests check the leader's machine against the papers' description of the Manager: Centrifuge 2.1.1 (high
// availability), 2.1.2 (partitioning and leasing), 2.2.1 (lookups), 2.3 to 2.3.2 (owners), and PRS 4.1 and 4.4.
// Each is named after the sentence that it checks. They use the paper's times: leases of 60 seconds that the
// manager keeps from others for 65.

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

const (
	paperNamespace leasehold.Namespace = "paper"
	paperBackoff                       = 200 * time.Millisecond
	paperHold                          = 65 * time.Second
	middle         leasehold.Key       = 1 << 63 // of the key space
)

// A paperLeader is a leader whose owners, lookups and store are simulated by the test. It divides the keys evenly,
// in the order of names: PRS 4.1 mentions tests with such a fixed hashing over a set of owners.
type paperLeader struct {
	t       *testing.T
	machine *manager.Machine
	now     mono.Instant
	wake    mono.Instant

	owners  []*paperOwner
	pending *storage.Batch // waits for its commit
	log     []table.Change // committed
	holdUp  bool           // commits wait until the test lets them happen
	answer  *protocol.LookupReply
	notes   []manager.Notable
	ordered []manager.Ordered // replies to orders
	deaths  []manager.DeathReply
	refused []error // errors of policies
}

func newPaperLeader(t *testing.T, options ...func(*manager.Config)) *paperLeader {
	t.Helper()
	return newPaperSuccessor(t, 1, &storage.State{}, options...)
}

// newPaperSuccessor returns a leader that has just taken over.
func newPaperSuccessor(t *testing.T, term leasehold.Term, state *storage.State, options ...func(*manager.Config)) *paperLeader {
	t.Helper()
	l := &paperLeader{t: t, now: mono.Instant(term) * mono.Instant(time.Hour), log: state.Changes}
	cfg := manager.Config{
		Namespace: paperNamespace, Self: "m", Timing: protocol.PaperTiming(), Policy: partition.Even{},
		Backoff: paperBackoff, Rand: rand.New(rand.NewPCG(3, 4)),
	}
	for _, set := range options {
		set(&cfg)
	}
	var err error
	l.machine, err = manager.New(l.now, cfg, term, mono.Never, state)
	if err != nil {
		t.Fatal(err)
	}
	l.advance(0)
	return l
}

func (l *paperLeader) step(e manager.Event) { l.did(l.machine.Step(l.now, e)) }

func (l *paperLeader) did(actions []manager.Action, wake mono.Instant) {
	l.wake = wake
	for _, a := range actions {
		switch a := a.(type) {
		case manager.Send:
			if err := a.Reply.Validate(protocol.DefaultLimits); err != nil {
				l.t.Errorf("an invalid message was sent: %v", err)
			}
			for _, o := range l.owners {
				if o.holder.Session == a.Reply.Session {
					o.unread = append(o.unread, a.Reply)
				}
			}
		case manager.Answer:
			l.answer = a.Reply
		case manager.Commit:
			l.pending = a.Batch
		case manager.Note:
			l.notes = append(l.notes, a.What)
			if a.Err != nil {
				l.refused = append(l.refused, a.Err)
			}
		case manager.Ordered:
			l.ordered = append(l.ordered, a)
		case manager.DeathReply:
			l.deaths = append(l.deaths, a)
		}
	}
	if l.pending != nil && !l.holdUp {
		l.commit()
	}
}

// commit commits the pending batch.
func (l *paperLeader) commit() {
	l.t.Helper()
	if l.pending == nil {
		l.t.Fatal("no batch is pending")
	}
	l.log = append(l.log, l.pending.Changes...)
	l.pending = nil
	l.step(manager.Committed{Outcome: storage.Done})
}

// advance lets time pass, and wakes the machine whenever it asked for it.
func (l *paperLeader) advance(d time.Duration) {
	end := l.now.Add(d)
	for l.now = min(max(l.wake, l.now), end); ; l.now = min(max(l.wake, l.now+1), end) {
		l.did(l.machine.Advance(l.now))
		if l.now == end {
			return
		}
	}
}

// ask sends a lookup's request and returns the reply; nil if there is none.
func (l *paperLeader) ask(lsn leasehold.LSN) *protocol.LookupReply {
	l.answer = nil
	l.step(manager.Lookup{LookupRequest: &protocol.LookupRequest{Namespace: paperNamespace, Lookup: 1, Seq: 1, LSN: lsn}})
	return l.answer
}

// holderAt returns the holder of a key in the committed table.
func (l *paperLeader) holderAt(k leasehold.Key) (leasehold.OwnerID, leasehold.Generation) {
	_, e := l.machine.Table().At(k)
	if e.Vacant() {
		return "", 0
	}
	return e.Holder.Owner, e.Generation
}

func (l *paperLeader) wantHolder(k leasehold.Key, owner leasehold.OwnerID, when string) {
	l.t.Helper()
	if got, g := l.holderAt(k); got != owner {
		l.t.Errorf("%s: key %v is held by %q (generation %d), want %q", when, k, got, g, owner)
	}
}

// settle lets every owner apply its replies, until there are no more messages.
func (l *paperLeader) settle() {
	for busy := true; busy; {
		busy = false
		for _, o := range l.owners {
			if len(o.unread) > 0 {
				busy = true
				o.obey()
			}
		}
	}
}

// join adds an owner and runs until nothing changes.
func (l *paperLeader) join(name leasehold.OwnerID) *paperOwner {
	o := l.introduce(name)
	l.settle()
	return o
}

// introduce adds an owner that sends its first request and acknowledges the reply.
func (l *paperLeader) introduce(name leasehold.OwnerID) *paperOwner {
	session := leasehold.Session{byte(len(l.owners) + 1)}
	copy(session[1:], name) // unique, whichever manager leads
	o := &paperOwner{leader: l, holder: &table.Holder{Owner: name, Session: session, Addr: string(name), Weight: 1, DeathHash: tokenOf(session).Hash()}}
	l.owners = append(l.owners, o)
	o.send()
	o.read()
	o.send()
	return o
}

// A paperOwner is one session of an owner that accepts every offer.
type paperOwner struct {
	leader  *paperLeader
	holder  *table.Holder
	seq     protocol.Seq
	lastAck protocol.Seq
	term    leasehold.Term
	leases  []leasehold.Lease
	claimed []leasehold.Lease // leases in its newest request
	unread  []*protocol.LeaseReply
	moving  *moving // nil if it cannot move state
}

// send sends a request with the owner's leases, which acknowledges the replies that it has read.
func (o *paperOwner) send() { o.leader.step(manager.Request{LeaseRequest: o.request()}) }

func (o *paperOwner) request() *protocol.LeaseRequest {
	o.seq++
	o.claimed = o.leases
	return o.moving.fill(&protocol.LeaseRequest{
		Namespace: paperNamespace, Holder: o.holder, Seq: o.seq,
		Term: o.term, Heard: o.lastAck, Applied: o.lastAck, Leases: o.leases,
	})
}

// read applies all unread replies, and returns the last one.
func (o *paperOwner) read() *protocol.LeaseReply {
	o.leader.t.Helper()
	if len(o.unread) == 0 {
		o.leader.t.Fatalf("no message to %s", o.holder.Owner)
	}
	last := o.unread[len(o.unread)-1]
	o.unread = nil
	o.lastAck, o.term, o.leases = last.Seq, last.Term, nil
	o.moving.apply(last)
	for _, offer := range last.Offers {
		o.leases = append(o.leases, offer.Lease)
	}
	return last
}

// obey applies the replies, and sends a request if anything has changed.
func (o *paperOwner) obey() {
	fresh := slices.ContainsFunc(o.read().Offers, func(o protocol.Offer) bool { return o.Fresh })
	if fresh || !protocol.SameLeases(o.leases, o.claimed) {
		o.send()
	}
}

// Centrifuge 2.1.1: the leader commits a change of its state before it responds to any owner or lookup.
func TestPaperCommitsBeforeItResponds(t *testing.T) {
	l := newPaperLeader(t)
	l.holdUp = true
	a := l.introduce("a")
	if l.pending == nil {
		t.Fatal("a member has no ranges, and no batch is pending")
	}
	for _, r := range a.unread {
		if len(r.Offers) > 0 {
			t.Errorf("offers %v before the commit", r.Offers)
		}
	}
	if r := l.ask(0); r.LSN != 0 || r.Snapshot != nil || len(r.Changes) > 0 {
		t.Errorf("a lookup receives LSN %d before the commit", r.LSN)
	}
	l.wantHolder(0, "", "before the commit")

	l.commit()
	if r := a.read(); len(r.Offers) != 1 {
		t.Errorf("offers %v after the commit, want one", r.Offers)
	}
	l.wantHolder(0, "a", "after the commit")
}

// Centrifuge 2.1.1: only the leader executes the logic and responds. Without authority, a leader neither replies
// nor expires leases.
func TestPaperOnlyTheLeaderResponds(t *testing.T) {
	state := &storage.State{}
	cfg := manager.Config{
		Namespace: paperNamespace, Self: "m", Timing: protocol.PaperTiming(), Policy: partition.Even{}, Rand: rand.New(rand.NewPCG(3, 4)),
	}
	const authority = mono.Instant(time.Minute)
	m, err := manager.New(0, cfg, 1, authority, state)
	if err != nil {
		t.Fatal(err)
	}
	l := &paperLeader{t: t, machine: m}
	l.advance(0)
	a := l.join("a")
	if l.wantHolder(0, "a", "with authority"); l.ask(0) == nil {
		t.Error("no reply to a lookup with authority")
	}

	l.now = authority
	a.send()
	if len(a.unread) > 0 || l.ask(0) != nil {
		t.Error("a reply without authority")
	}
	l.advance(time.Hour)
	l.wantHolder(0, "a", "an hour after its authority expired")
	l.step(manager.Authority{Until: mono.Never})
	l.advance(0)
	l.wantHolder(0, "a", "with authority again, after an hour without a request of a, as no other owner could take its range")
	b := l.introduce("b")
	b.read()
	l.keepAlive(4*time.Second, b)
	l.wantHolder(0, "a", "time without authority does not count: a has the rest of its lease to return")
	l.keepAlive(2*time.Second, b)
	l.wantHolder(0, "b", "a has not returned")
}

// Centrifuge 2.1.1, PRS 4.4: a new leader reads the state and continues. In PRS all leases expire, and all state is
// lost; here no owner loses a lease, and no lookup reports a loss.
func TestPaperFailoverLosesNothing(t *testing.T) {
	first := newPaperLeader(t)
	a, b := first.join("a"), first.join("b")
	held := [][]leasehold.Lease{a.leases, b.leases}

	l := newPaperSuccessor(t, 2, &storage.State{Term: 2, Changes: first.log})
	l.owners = []*paperOwner{a, b}
	for _, o := range l.owners {
		o.leader = l
		o.send()
		o.read()
		o.send()
		o.read()
	}
	if diff := cmp.Diff(held, [][]leasehold.Lease{a.leases, b.leases}); diff != "" {
		t.Errorf("leases after the failover (-before +after):\n%s", diff)
	}
	if len(l.log) != len(first.log) {
		t.Errorf("the failover changed the table: %v", l.log[len(first.log):])
	}
}

// PRS 4.4: leases that an earlier leader granted must expire before the ranges are granted again. Here this applies
// to owners that do not return: they may have been renewed just before the failover.
func TestPaperFailoverWaitsForWhoDoesNotComeBack(t *testing.T) {
	first := newPaperLeader(t)
	a, _ := first.join("a"), first.join("b")
	l := newPaperSuccessor(t, 2, &storage.State{Term: 2, Changes: first.log})
	l.owners = []*paperOwner{a}
	a.leader = l
	for range 6 {
		l.step(manager.Authority{Until: mono.Never}) // keeps its authority
		l.advance(0)
		l.wantHolder(middle, "b", "before the lease of b expires")
		a.send()
		l.settle()
		l.advance(10 * time.Second)
	}
	l.advance(paperHold - 60*time.Second - 1)
	l.wantHolder(middle, "b", "a nanosecond before 65 seconds have passed")
	l.advance(1)
	l.wantHolder(middle, "a", "65 seconds after the takeover")
}

// Centrifuge 2.1.2: when a new owner joins, the manager computes the new assignment, recalls the ranges of the new
// owner, and grants them as they become available.
func TestPaperRecallsAndThenGrants(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	b := l.introduce("b")
	if got := a.read().Offers; len(got) != 1 || got[0].Range != (leasehold.Range{Limit: middle}) || got[0].Fresh {
		t.Errorf("a is offered %v, want the lower half", got)
	}
	l.wantHolder(middle, "a", "during the recall")
	l.advance(30 * time.Second)
	l.wantHolder(middle, "a", "during the recall")
	if r := b.read(); len(r.Offers) > 0 {
		t.Errorf("b is offered %v, which a has not released", r.Offers)
	}

	a.send()
	l.wantHolder(middle, "b", "after the release by a")
	if got := b.read().Offers; len(got) != 1 || got[0].Range.Start != middle || !got[0].Fresh {
		t.Errorf("b is offered %v, want a grant of the upper half", got)
	}
}

// Centrifuge 2.3.2: with recalls a new owner gets its ranges after one round trip. Without a reply they become
// available when they expire.
func TestPaperRecallTakesOneRoundTrip(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	start := l.now
	l.join("b")
	if l.now != start {
		t.Errorf("b has its range after %v, want only the time of the messages", l.now.Sub(start))
	}
	l.wantHolder(middle, "b", "after a round trip")

	c := l.introduce("c") // all owners must release ranges; a does not answer
	c.read()
	l.owners[1].read()
	l.keepAlive(paperHold+time.Second, l.owners[1], c)
	if owner, _ := l.holderAt(0); owner == a.holder.Owner {
		t.Errorf("a has been silent for longer than %v, and still has a range", paperHold)
	}
}

// Centrifuge 2.1.2: the removal of an owner is similar: its ranges go to the other owners when its leases have
// expired.
func TestPaperRemovalOfAnOwner(t *testing.T) {
	l := newPaperLeader(t)
	a, b := l.join("a"), l.join("b")
	b.send()
	silent := l.now
	for range 6 {
		l.advance(10 * time.Second)
		a.send()
		l.settle()
	}
	l.advance(silent.Add(paperHold - 1).Sub(l.now))
	l.wantHolder(middle, "b", "a nanosecond before its deadline")
	l.advance(1)
	l.wantHolder(middle, "a", "at its deadline")
}

// PRS 4.1: every new assignment of a lease has a new generation. So every loss of state is visible in the table.
func TestPaperEveryAssignmentHasANewGeneration(t *testing.T) {
	l := newPaperLeader(t)
	names := []leasehold.OwnerID{"d", "a", "c", "b"}
	for _, name := range names {
		l.join(name)
	}
	l.advance(2 * paperHold) // all of them die
	for _, name := range names {
		l.join(name)
	}
	var newest leasehold.Generation
	granted := 0
	for i := range l.log {
		if c := &l.log[i]; c.Kind == table.Granted {
			granted++
			if c.Generation <= newest {
				t.Errorf("%v: generation is not newer than %d", c, newest)
			}
			newest = c.Generation
		}
	}
	if granted < 2*len(names) {
		t.Errorf("%d grants, want at least %d", granted, 2*len(names))
	}
}

// PRS 4.1: an owner that restarts is granted new leases; its old ones are not extended.
func TestPaperRestartedOwnerGetsNewLeases(t *testing.T) {
	l := newPaperLeader(t)
	l.join("a")
	_, before := l.holderAt(0)
	again := l.join("a")
	if len(again.leases) > 0 {
		t.Errorf("the new session has %v while the old one may be alive", again.leases)
	}
	for range 7 {
		l.advance(10 * time.Second)
		again.send()
		l.settle()
	}
	if _, after := l.holderAt(0); after <= before || len(again.leases) != 1 || again.leases[0].Generation != after {
		t.Errorf("the new session has %v at generation %d, want a newer one than %d", again.leases, after, before)
	}
}

// PRS 4.1: if an owner crashes and does not return, its ranges go to others. This includes an owner that leaves
// before its grant is committed.
func TestPaperGrantToAnOwnerThatIsGone(t *testing.T) {
	l := newPaperLeader(t)
	b := l.join("b")
	l.holdUp = true
	a := l.introduce("a") // b releases the lower half for it
	b.obey()
	bye := a.request()
	bye.Leases, bye.Leaving = nil, true
	l.step(manager.Request{LeaseRequest: bye})
	l.holdUp = false
	l.commit() // only now
	l.settle()
	l.wantHolder(0, "b", "after the grant to an owner that had left")
}

// PRS 4.1: the partitioning policy is a separate module that can be replaced. The manager validates its result: an
// invalid assignment changes nothing, and the policy runs again.
func TestPaperPolicyIsAModuleOfItsOwn(t *testing.T) {
	policy := &whim{answer: partition.Assignment{{Owner: "b"}}}
	l := newPaperLeader(t, func(c *manager.Config) { c.Policy = policy })
	l.join("a")
	l.join("b")
	l.wantHolder(0, "b", "with a valid assignment")

	policy.answer = partition.Assignment{{Owner: "stranger"}}
	l.join("c")
	l.wantHolder(0, "b", "with an unknown owner in the assignment")

	policy.answer = partition.Assignment{{Owner: "a"}}
	l.advance(15 * time.Second)
	l.settle()
	l.wantHolder(0, "a", "with a valid assignment again")
}

// A whim is a policy whose result the test sets, restricted to members.
type whim struct{ answer partition.Assignment }

func (*whim) Name() string { return "whim" }

// Partial: ranges may stay without an owner.
func (*whim) Partial() bool { return true }

func (w *whim) Assign(in partition.Input) (partition.Assignment, error) {
	for _, m := range in.Members {
		if m.Owner == w.answer[0].Owner || w.answer[0].Owner == "stranger" {
			return w.answer, nil
		}
	}
	return partition.Assignment{{}}, nil
}

// Centrifuge 2.1.2: the change log keeps five minutes.
// Centrifuge 2.2.1: a lookup whose LSN it no longer reaches gets a snapshot.
func TestPaperChangeLogKeepsFiveMinutes(t *testing.T) {
	l := newPaperLeader(t)
	a, b := l.join("a"), l.join("b")
	lsn := l.machine.Table().LSN()
	c := l.join("c")
	keepAlive := func(d time.Duration) {
		for end := l.now.Add(d); l.now < end; {
			l.advance(min(15*time.Second, end.Sub(l.now)))
			for _, o := range []*paperOwner{a, b, c} {
				o.send()
				o.read()
			}
		}
	}
	keepAlive(5 * time.Minute)
	if r := l.ask(lsn); len(r.Changes) == 0 || r.Snapshot != nil {
		t.Errorf("after 5 minutes: %d changes, snapshot %t, want changes", len(r.Changes), r.Snapshot != nil)
	}
	keepAlive(1)
	if r := l.ask(lsn); len(r.Changes) > 0 || r.Snapshot == nil || r.Snapshot.LSN() != r.LSN {
		t.Errorf("after more than 5 minutes: %d changes, snapshot %t, want a snapshot", len(r.Changes), r.Snapshot != nil)
	}
}

// Centrifuge 2.2.1: a lookup sends its LSN, and gets exactly the changes after it.
func TestPaperLookupGetsTheChangesSinceItsLSN(t *testing.T) {
	l := newPaperLeader(t)
	for _, name := range []leasehold.OwnerID{"a", "b", "c", "d"} {
		l.join(name)
	}
	end := leasehold.LSN(len(l.log))
	for lsn := end - 3; lsn <= end; lsn++ {
		r := l.ask(lsn)
		if r == nil || r.LSN != end || r.Snapshot != nil {
			t.Fatalf("the reply to LSN %d is %+v, want changes up to %d", lsn, r, end)
		}
		if diff := cmp.Diff(l.log[lsn:], r.Changes); lsn < end && diff != "" {
			t.Errorf("changes after LSN %d (-want +got):\n%s", lsn, diff)
		}
		if lsn == end && len(r.Changes) > 0 {
			t.Errorf("%d changes after the last", len(r.Changes))
		}
	}
}

// Centrifuge 2.2.1: a lookup also gets a snapshot if that is smaller than the changes, for instance when many
// owners join at once.
func TestPaperLookupGetsASnapshotWhereItIsSmaller(t *testing.T) {
	l := newPaperLeader(t)
	l.join("a")
	for _, name := range []leasehold.OwnerID{"b", "c", "d", "e", "f", "g", "h"} {
		l.join(name)
	}
	r := l.ask(1)
	if changes := len(l.log) - 1; changes <= l.machine.Table().Len() {
		t.Fatalf("%d changes and %d ranges are no test case", changes, l.machine.Table().Len())
	}
	if r.Snapshot == nil || len(r.Changes) > 0 {
		t.Fatalf("%d changes, snapshot %t, want a snapshot of %d ranges", len(r.Changes), r.Snapshot != nil, l.machine.Table().Len())
	}
	var want, got []string
	for r, e := range l.machine.Table().All() {
		want = append(want, r.String()+e.Holder.String())
	}
	for r, e := range r.Snapshot.All() {
		got = append(got, r.String()+e.Holder.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

// Centrifuge 2.3: every response has the complete set of ranges that the owner should hold, renewed or granted.
func TestPaperEveryResponseHasTheCompleteSet(t *testing.T) {
	l := newPaperLeader(t, func(c *manager.Config) { c.Policy = partition.Consistent{VirtualNodes: 8} })
	a := l.join("a")
	l.join("b")
	for range 3 {
		l.advance(10 * time.Second)
		a.send()
		var want []leasehold.Lease
		for r, e := range l.machine.Table().All() {
			if e.Holder == a.holder {
				want = append(want, leasehold.Lease{Range: r, Generation: e.Generation})
			}
		}
		a.read()
		if diff := cmp.Diff(want, a.leases); diff != "" || len(want) < 2 {
			t.Errorf("a response has %d leases (-table +response):\n%s", len(a.leases), diff)
		}
		l.owners[1].send()
		l.owners[1].read()
	}
}

// Centrifuge 2.3: responses distinguish grants from renewals. A lease is offered as a grant until the owner has
// confirmed it, and as a renewal from then on.
func TestPaperGrantsDifferFromRenewals(t *testing.T) {
	l := newPaperLeader(t)
	a := l.introduce("a")
	if r := a.read(); len(r.Offers) != 1 || !r.Offers[0].Fresh {
		t.Errorf("the first offer is %v, want a grant", r.Offers)
	}
	a.send()
	for range 3 {
		if r := a.read(); len(r.Offers) != 1 || r.Offers[0].Fresh {
			t.Errorf("a confirmed lease is offered as %v, want a renewal", r.Offers)
		}
		a.send()
	}
}

// Centrifuge 2.3: if an owner refuses a renewal, the lease is free. It is granted again, under another generation,
// and lookups receive the loss of state.
func TestPaperRefusedRenewalIsGrantedAnew(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	old := a.leases[0]
	a.leases = nil // it has lost them
	a.send()
	r := a.read()
	if len(r.Offers) != 1 || !r.Offers[0].Fresh || r.Offers[0].Generation <= old.Generation {
		t.Errorf("it is offered %v, want a grant under a newer generation than %d", r.Offers, old.Generation)
	}
	var losses []leasehold.Loss
	for i := range l.log {
		if loss, lost := l.log[i].Loss(); lost {
			losses = append(losses, loss)
		}
	}
	want := []leasehold.Loss{{Range: old.Range, Owner: "a", Generation: old.Generation, Cause: leasehold.CauseRefused, LSN: 2}}
	if diff := cmp.Diff(want, losses); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}
}

// Centrifuge 2.3.1: the manager makes a lease unavailable to others for 65 seconds on its own clock. They count
// from the arrival of the request that its replies echo. Unsolicited messages, and dropped requests, do not count,
// for the owner's 60 seconds do not change either.
func TestPaperKeepsALeaseFor65Seconds(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	accepted := l.now
	b := l.introduce("b") // it gets a's upper half, and a does not answer the recall
	for l.now < accepted.Add(paperHold-5*time.Second) {
		l.advance(4 * time.Second)
		if r := b.read(); len(r.Offers) > 0 {
			t.Fatalf("%v after the last request of a, b is offered %v", l.now.Sub(accepted), r.Offers)
		}
		b.send()
		racing := a.request() // a has not received the recall, so this crosses it
		l.step(manager.Request{LeaseRequest: racing})
	}
	l.advance(accepted.Add(paperHold - 1).Sub(l.now))
	l.wantHolder(middle, "a", "65 seconds less a nanosecond after the last request of a")
	l.advance(1)
	l.wantHolder(middle, "b", "65 seconds after the last request of a")
	for _, r := range a.unread {
		if r.Echo != 3 {
			t.Errorf("message %d echoes request %d, want 3, the last accepted one", r.Seq, r.Echo)
		}
	}
}

// Centrifuge 2.3.2: a request that does not contain the manager's most recent sequence number was sent before the
// owner processed that message, and is dropped. The manager waits for a random time, and sends again.
func TestPaperRacingRequestIsDropped(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	a.send()
	a.unread = nil // the reply is delayed, and a sends another request first
	racing := a.request()
	racing.Leases = nil // even a release does not count
	l.step(manager.Request{LeaseRequest: racing})
	if len(a.unread) > 0 || !slices.Contains(l.notes, manager.NoteRace) {
		t.Errorf("the reply to a racing request is %v", a.unread)
	}
	l.wantHolder(0, "a", "after a racing request without leases")
	before := l.now
	l.advance(paperBackoff)
	if len(a.unread) != 1 {
		t.Fatalf("%d messages within %v of the race, want one", len(a.unread), l.now.Sub(before))
	}
	if r := a.unread[0]; r.Echo != racing.Seq-1 || len(r.Offers) != 1 {
		t.Errorf("it sends <%d,%d> with %d offers, want a reply to %d with one", r.Echo, r.Seq, len(r.Offers), racing.Seq-1)
	}
}

// Centrifuge 2.3.2, figure 6: a request that crosses the grant of a lease reflects the time before. It does not
// release the lease, even if the plan has it for another owner.
func TestPaperRecallAcknowledgementThatCrossesAGrant(t *testing.T) {
	policy := &whim{answer: partition.Assignment{{Owner: "a"}}}
	l := newPaperLeader(t, func(c *manager.Config) { c.Policy = policy })
	l.holdUp = true
	a := l.introduce("a")
	a.read()
	late := a.request() // "I don't have the lease"
	l.commit()          // "Here is the lease"
	if len(a.unread) != 1 {
		t.Fatalf("%d messages, want the grant", len(a.unread))
	}
	policy.answer = partition.Assignment{{Owner: "b"}}
	l.introduce("b")
	l.step(manager.Request{LeaseRequest: late})
	if l.pending != nil {
		t.Errorf("the leader acts on it: %v", &l.pending.Changes[0])
	}
	l.wantHolder(0, "a", "after the request that crossed the grant")
}

// Centrifuge 2.3.2: a late message of an earlier session is not attributed to the current session.
func TestPaperLateMessageOfAnEarlierSession(t *testing.T) {
	l := newPaperLeader(t)
	first := l.join("a")
	late := first.request()
	late.Leases = nil
	late.Leaving = true // the first session left; this request is late
	second := l.introduce("a")
	l.step(manager.Request{LeaseRequest: late})
	l.settle()
	if _, e := l.machine.Table().At(0); e.Holder != second.holder {
		t.Fatalf("key 0 is held by %v, want %v", e.Holder, second.holder)
	}
	// The same request again, after the session has ended.
	late.Seq++
	l.step(manager.Request{LeaseRequest: late})
	l.settle()
	if _, e := l.machine.Table().At(0); e.Holder != second.holder {
		t.Errorf("key 0 is held by %v, want %v", e.Holder, second.holder)
	}
}
