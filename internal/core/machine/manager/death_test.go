package manager_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// tokenOf returns the token that the supervisor of a session has.
func tokenOf(s leasehold.Session) (t table.DeathToken) {
	copy(t[1:], s[:])
	t[0] = 's'
	return t
}

func noticeOf(h *table.Holder) *protocol.DeathNotice {
	return &protocol.DeathNotice{Namespace: paperNamespace, Owner: h.Owner, Session: h.Session, Token: tokenOf(h.Session)}
}

// report presents a notice, and returns the replies that it causes at once.
func (l *paperLeader) report(n *protocol.DeathNotice) []protocol.DeathOutcome {
	l.deaths = nil
	l.step(manager.Died{ID: 7, DeathNotice: n})
	return l.outcomes()
}

// outcomes returns the replies to notices since the last call.
func (l *paperLeader) outcomes() (out []protocol.DeathOutcome) {
	for _, r := range l.deaths {
		out = append(out, r.Outcome)
	}
	l.deaths = nil
	return out
}

// dies reports the end of an owner's process, which sends and receives nothing from now on.
func (o *paperOwner) dies() []protocol.DeathOutcome {
	o.leader.owners[slices.Index(o.leader.owners, o)] = &paperOwner{holder: &table.Holder{}}
	return o.leader.report(noticeOf(o.holder))
}

func (l *paperLeader) wantOutcome(got []protocol.DeathOutcome, want ...protocol.DeathOutcome) {
	l.t.Helper()
	if !slices.Equal(got, want) {
		l.t.Fatalf("the notice got the replies %v, want %v", got, want)
	}
}

// wantLost fails unless exactly these ranges are recorded as lost because their holder died.
func (l *paperLeader) wantLost(since int, want ...leasehold.Range) {
	l.t.Helper()
	var got []leasehold.Range
	for _, c := range l.log[since:] {
		if c.Kind == table.Vacated && c.Cause == leasehold.CauseDied {
			got = append(got, c.Range)
		}
	}
	if !slices.Equal(got, want) {
		l.t.Errorf("lost by death: %v, want %v; recorded: %v", got, want, l.log[since:])
	}
}

// I12: the ranges of a dead session are granted at once. The reply follows the commit, and so does every message
// that reveals it.
func TestDeathFreesAtOnce(t *testing.T) {
	l := newPaperLeader(t)
	a, b := l.join("a"), l.join("b")
	before, recorded := l.now, len(l.log)
	l.holdUp = true
	l.wantOutcome(b.dies())
	l.wantHolder(middle, "b", "before the commit")
	if len(a.unread) > 0 {
		t.Errorf("a got %v before the commit", a.unread)
	}
	l.commit()
	l.wantOutcome(l.outcomes(), protocol.DeathRecorded)
	l.wantHolder(middle, "a", "after the commit")
	l.wantLost(recorded, leasehold.Range{Start: middle})
	l.wantChanges(recorded, "lost", "granted")
	if l.now != before {
		t.Errorf("it took %v", l.now.Sub(before))
	}
	l.settle()
	if len(a.leases) != 2 || l.noted(manager.NoteDied) != 1 {
		t.Errorf("a has %v; noted %d times", a.leases, l.noted(manager.NoteDied))
	}
}

// A repeated notice waits for the same commit, and is acknowledged later as well.
func TestRepeatedNotices(t *testing.T) {
	l := newPaperLeader(t)
	_, b := l.join("a"), l.join("b")
	recorded := len(l.log)
	l.holdUp = true
	l.wantOutcome(b.dies())
	l.wantOutcome(l.report(noticeOf(b.holder)))
	l.commit()
	l.wantOutcome(l.outcomes(), protocol.DeathRecorded, protocol.DeathRecorded)
	l.wantLost(recorded, leasehold.Range{Start: middle})
	l.holdUp = false
	l.wantOutcome(l.report(noticeOf(b.holder)), protocol.DeathRecorded)
	l.advance(2 * paperHold)
	l.join("c").dies() // removes the first death
	l.wantOutcome(l.report(noticeOf(b.holder)), protocol.DeathUnknown)
}

func TestNoticesWithoutEffect(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(n *protocol.DeathNotice, other *paperOwner)
		want   protocol.DeathOutcome
	}{
		{"a guess", func(n *protocol.DeathNotice, _ *paperOwner) { n.Token[31] ^= 1 }, protocol.DeathRefused},
		{"the hash as the token", func(n *protocol.DeathNotice, _ *paperOwner) { n.Token = table.DeathToken(n.Token.Hash()) }, protocol.DeathRefused},
		{"the token of another session", func(n *protocol.DeathNotice, other *paperOwner) { n.Token = tokenOf(other.holder.Session) }, protocol.DeathRefused},
		{"a session of another owner", func(n *protocol.DeathNotice, other *paperOwner) { n.Owner = other.holder.Owner }, protocol.DeathRefused},
		{"another namespace", func(n *protocol.DeathNotice, _ *paperOwner) { n.Namespace = "other" }, protocol.DeathRefused},
		{"an unknown session", func(n *protocol.DeathNotice, _ *paperOwner) { n.Session[15] = 99 }, protocol.DeathUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newPaperLeader(t)
			a, b := l.join("a"), l.join("b")
			recorded, n := len(l.log), noticeOf(b.holder)
			c.change(n, a)
			l.wantOutcome(l.report(n), c.want)
			l.wantChanges(recorded)
			b.send()
			if offers := b.read().Offers; len(offers) != 1 {
				t.Errorf("afterwards b is offered %v", offers)
			}
		})
	}
}

// A session without a hash expires as usual.
func TestDeathWithoutHash(t *testing.T) {
	l := newPaperLeader(t)
	l.join("a")
	b := l.newcomer("b")
	b.holder.DeathHash = table.DeathHash{}
	b.greet()
	l.settle()
	l.wantOutcome(l.report(noticeOf(b.holder)), protocol.DeathUnknown)
	l.wantHolder(middle, "b", "without a hash")
}

// If two processes use one session, the end of one proves nothing about the other.
func TestDeathOfACopiedSession(t *testing.T) {
	l := newPaperLeader(t)
	_, b := l.join("a"), l.join("b")
	b.send()
	r := b.request()
	r.Seq, r.Heard, r.Applied = b.seq-1, b.lastAck-1, b.lastAck-1
	l.step(manager.Request{LeaseRequest: r})
	if l.noted(manager.NoteCopy) == 0 {
		t.Fatal("the copy is not detected")
	}
	l.wantOutcome(l.report(noticeOf(b.holder)), protocol.DeathUnknown)
	l.wantHolder(middle, "b", "after a notice about one of two processes")
}

// A late request of the dead session gets nothing, and does not keep its name from the next session.
func TestLateRequestOfTheDead(t *testing.T) {
	l := newPaperLeader(t)
	a, b := l.join("a"), l.join("b")
	late, leaving := b.request(), b.request()
	leaving.Leaving, leaving.Leases = true, nil
	b.dies()
	l.settle()
	recorded := len(l.log)
	for _, r := range []*protocol.LeaseRequest{late, leaving, late} {
		l.step(manager.Request{LeaseRequest: r})
		l.settle()
	}
	l.wantChanges(recorded)
	if n := l.noted(manager.NoteLate); n != 3 {
		t.Errorf("%d late messages were noted, want 3", n)
	}
	b2 := l.join("b")
	if len(b2.leases) != 1 || l.noted(manager.NoteNameTaken) != 0 {
		t.Errorf("the next session of b has %v, a has %v", b2.leases, a.leases)
	}
}

// A live process that a supervisor has reported by mistake is refused, so that it stops acting on its leases.
func TestReportedAlive(t *testing.T) {
	l := newPaperLeader(t)
	_, b := l.join("a"), l.join("b")
	l.report(noticeOf(b.holder))
	b.send()
	if r := b.read(); r.Refusal != leasehold.ErrClosed || len(r.Offers) != 0 {
		t.Errorf("it got %+v, want a refusal", r)
	}
}

// The session that waits for the name gets it, and ranges, at once. It is not the one that died.
func TestDeathHandsTheNameOver(t *testing.T) {
	l := newPaperLeader(t)
	a, b := l.join("a"), l.join("b")
	b2 := l.introduce("b")
	if r := b2.read(); r.Incumbent == nil {
		t.Fatal("the name is free")
	}
	b2.send()
	recorded := len(l.log)
	l.wantOutcome(b.dies(), protocol.DeathRecorded)
	l.settle()
	if len(b2.leases) != 1 || len(a.leases) != 1 {
		t.Errorf("the successor has %v, a has %v", b2.leases, a.leases)
	}
	l.wantLost(recorded, leasehold.Range{Start: middle})
	// The proof for the first session is none for the second.
	n := noticeOf(b.holder)
	n.Session = b2.holder.Session
	l.wantOutcome(l.report(n), protocol.DeathRefused)
	l.wantHolder(middle, "b", "after a replay")
}

// A waiting session dies: the name is free for the next one.
func TestDeathOfAContender(t *testing.T) {
	l := newPaperLeader(t)
	_, b := l.join("a"), l.join("b")
	b2 := l.introduce("b")
	recorded := len(l.log)
	l.wantOutcome(b2.dies(), protocol.DeathRecorded)
	l.wantChanges(recorded)
	b3 := l.introduce("b")
	if r := b3.read(); r.Incumbent == nil || r.Incumbent.Session != b.holder.Session {
		t.Errorf("a third session is sent %+v", r)
	}
	b3.send()
	b.dies()
	l.settle()
	if len(b3.leases) == 0 {
		t.Error("the third session gets nothing")
	}
}

// A grant to the session may be in the store's hands when the notice arrives. The reply follows its end as well.
func TestDeathWhileAGrantIsCommitted(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	l.holdUp = true
	b := l.introduce("b")
	a.read()
	a.send() // releases the upper half, which is granted to b
	recorded := len(l.log)
	l.wantOutcome(b.dies())
	l.commit() // the grant
	l.wantOutcome(l.outcomes())
	l.wantHolder(middle, "b", "after the commit of the grant")
	l.commit()
	l.wantOutcome(l.outcomes(), protocol.DeathRecorded)
	l.wantLost(recorded, leasehold.Range{Start: middle})
	l.wantHolder(middle, "a", "after the commit of its end")
}

// The same if the batch has no other change than the grant.
func TestDeathWhileTheFirstGrantIsCommitted(t *testing.T) {
	l := newPaperLeader(t)
	l.holdUp = true
	b := l.introduce("b")
	l.wantOutcome(b.dies())
	l.commit() // the grant
	l.wantOutcome(l.outcomes())
	l.commit()
	l.wantOutcome(l.outcomes(), protocol.DeathRecorded)
}

// The reply also follows the commit if the session's leases have ended for another reason.
func TestDeathAfterLeaving(t *testing.T) {
	l := newPaperLeader(t)
	_, b := l.join("a"), l.join("b")
	l.holdUp = true
	b.leave()
	l.wantOutcome(l.report(noticeOf(b.holder)))
	l.commit()
	l.wantOutcome(l.outcomes(), protocol.DeathUnknown)
}

// A session that has sent one request and has nothing yet.
func TestDeathBeforeTheFirstGrant(t *testing.T) {
	l := newPaperLeader(t)
	l.join("a")
	b := l.newcomer("b")
	b.send()
	recorded := len(l.log)
	l.wantOutcome(b.dies(), protocol.DeathRecorded)
	l.wantChanges(recorded)
	if b2 := l.join("b"); len(b2.leases) != 1 {
		t.Errorf("the next session has %v", b2.leases)
	}
}

// Leases in several parts, some of them recalled, are all freed.
func TestDeathFreesEveryPart(t *testing.T) {
	l, p := newMovingLeader(t, "abab")
	_, b := l.join("a"), l.join("b")
	l.renew(70*time.Second, l.owners...)
	p.give("aabb")
	l.step(manager.Order{Kind: manager.OrderRebalance}) // recalls the first of b, which does not answer
	recorded := len(l.log)
	l.wantOutcome(b.dies(), protocol.DeathRecorded)
	l.wantLost(recorded, cell(1, 2), cell(3, 0))
	l.wantHolder(cell(1, 2).Start, "a", "after the death")
}

// An owner that is drained, or has asked to leave, dies.
func TestDeathOfARetiringOwner(t *testing.T) {
	for name, retire := range map[string]func(*paperLeader, *paperOwner){
		"drained": func(l *paperLeader, b *paperOwner) { l.must(manager.OrderDrain, "b", leasehold.Range{}) },
		"parting": func(_ *paperLeader, b *paperOwner) {
			b.moving.parting = true
			b.send()
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, p := newMovingLeader(t, "ab")
			a, b := l.mover("a"), l.mover("b")
			p.give("aa")
			retire(l, b)
			recorded := len(l.log)
			l.wantOutcome(b.dies(), protocol.DeathRecorded)
			l.wantLost(recorded, cell(1, 0))
			a.send()
			l.settle()
			l.renew(10*time.Second, a)
			l.wantHolder(cell(1, 2).Start, "a", "after the death")
			if r := a.moving.last; len(r.Departures)+len(r.Arrivals) > 0 {
				t.Errorf("a still has moves: %+v", r)
			}
		})
	}
}

// All owners are silent, and are kept in the table because none could take the ranges of another. A notice is more
// than silence.
func TestDeathDuringAnOutage(t *testing.T) {
	l := newPaperLeader(t)
	_, b := l.join("a"), l.join("b")
	l.advance(10 * time.Minute)
	l.wantHolder(middle, "b", "during the outage")
	recorded := len(l.log)
	l.wantOutcome(b.dies(), protocol.DeathRecorded)
	l.wantLost(recorded, leasehold.Range{Start: middle})
	l.wantHolder(0, "a", "a is only silent")
}

// A namespace that is being deleted is empty as soon as its owners are dead.
func TestDeathInADeletedNamespace(t *testing.T) {
	l := newPaperLeader(t)
	b := l.join("b")
	l.step(manager.Reconfigured{Config: manager.Config{Timing: protocol.PaperTiming(), Deleted: true}})
	l.wantOutcome(b.dies(), protocol.DeathRecorded)
	if !l.machine.Empty() {
		t.Error("it is not empty")
	}
}

// Without authority nothing is decided.
func TestDeathWithoutAuthority(t *testing.T) {
	first := newPaperLeader(t)
	_, b := first.join("a"), first.join("b")
	cfg := poolConfig()
	cfg.Namespace = paperNamespace
	m, err := manager.New(0, cfg, 2, mono.Instant(time.Second), &storage.State{Term: 2, Changes: first.log})
	if err != nil {
		t.Fatal(err)
	}
	l := &paperLeader{t: t, machine: m, now: mono.Instant(time.Second)}
	l.wantOutcome(l.report(noticeOf(b.holder)), protocol.DeathUndecided)
	l.step(manager.Authority{Until: mono.Never})
	l.wantOutcome(l.report(noticeOf(b.holder)), protocol.DeathRecorded)
}

// A successor verifies a notice by the hash that any range of the session has: the session may have announced it after
// its first grant.
func TestDeathHashOfALaterGrant(t *testing.T) {
	plain := &table.Holder{Owner: "b", Session: leasehold.Session{2}, Addr: "b", Weight: 1}
	supervised := *plain
	supervised.DeathHash = tokenOf(plain.Session).Hash()
	cfg := poolConfig()
	cfg.Namespace = paperNamespace
	m, err := manager.New(0, cfg, 2, mono.Never, &storage.State{Term: 2, Changes: []table.Change{
		{LSN: 1, Kind: table.Granted, Range: leasehold.Range{Limit: middle}, Generation: 1, Holder: plain},
		{LSN: 2, Kind: table.Granted, Range: leasehold.Range{Start: middle}, Generation: 2, Holder: &supervised},
	}})
	if err != nil {
		t.Fatal(err)
	}
	l := &paperLeader{t: t, machine: m}
	l.wantOutcome(l.report(noticeOf(plain)), protocol.DeathRecorded)
}

// Notices and deaths are bounded.
func TestDeathsAreBounded(t *testing.T) {
	l := newPaperLeader(t, func(c *manager.Config) { c.MaxOwners = 4 })
	l.join("a")
	l.holdUp = true
	b := l.introduce("b") // its grant is pending from now on
	l.owners[0].read()
	l.owners[0].send()
	for i := range 4 {
		l.wantOutcome(l.report(noticeOf(b.holder)))
		if n := l.machine.Sizes().Deaths; n != i+2 {
			t.Fatalf("%d notices: size %d", i+1, n)
		}
	}
	l.wantOutcome(l.report(noticeOf(b.holder)), protocol.DeathUndecided)
	l.commit()
	l.commit()
	if got := l.outcomes(); len(got) != 4 {
		t.Errorf("replies %v", got)
	}
	l.holdUp = false
	var last *protocol.LeaseRequest
	for range 24 {
		b := l.join("b")
		last = b.request()
		b.dies()
	}
	if n := l.machine.Sizes().Deaths; n != 4*4 {
		t.Errorf("%d deaths are kept, want 16", n)
	}
	if l.step(manager.Request{LeaseRequest: last}); l.noted(manager.NoteLate) != 1 {
		t.Error("the newest death is not kept")
	}
	l.advance(2 * paperHold)
	l.join("b").dies()
	if n := l.machine.Sizes().Deaths; n != 1 {
		t.Errorf("%d deaths are kept, want the newest only", n)
	}
}
