package owner_test

// These tests check the owner's machine against the papers' description of the Owner
// library: Centrifuge 2.3 (content and frequency of messages), 2.3.1 (clocks) and
// 2.3.2 (message races), and PRS 4.3. Each is named after the sentence that it
// checks. They use the paper's timing: leases of 60 seconds, renewed every 15.

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

const paperBackoff = 200 * time.Millisecond

var paperSession = leasehold.Session{1}

// A paperOwner is an owner; the test takes the role of its leader. Requests are recorded, and the test
// makes the replies.
type paperOwner struct {
	t       *testing.T
	machine *owner.Machine
	now     mono.Instant
	wake    mono.Instant
	seq     protocol.Seq // of the leader's newest reply

	sent    []owner.Send // all requests so far
	actions []owner.Action
}

func newPaperOwner(t *testing.T) *paperOwner {
	t.Helper()
	o := &paperOwner{t: t, now: mono.Instant(time.Hour)}
	var err error
	o.machine, err = owner.New(o.now, owner.Config{
		Namespace: "paper", Rand: rand.New(rand.NewPCG(1, 2)), Backoff: paperBackoff,
		Holder: &table.Holder{Owner: "a", Session: paperSession, Addr: "a:1", Weight: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	o.advance(0)
	return o
}

// newPaperHolder returns an owner that holds these leases, renewed at this instant.
func newPaperHolder(t *testing.T, leases ...leasehold.Lease) *paperOwner {
	t.Helper()
	o := newPaperOwner(t)
	o.receive(o.reply())
	o.receive(o.reply(grants(leases...)...))
	o.receive(o.reply(renewals(leases...)...))
	return o
}

func (o *paperOwner) did(actions []owner.Action, wake mono.Instant) {
	o.actions = append([]owner.Action(nil), actions...)
	o.wake = wake
	for _, a := range actions {
		if s, ok := a.(owner.Send); ok {
			o.sent = append(o.sent, s)
		}
	}
}

// advance advances the time by d, and calls Advance at each wake.
func (o *paperOwner) advance(d time.Duration) {
	end := o.now.Add(d)
	for o.now = min(max(o.wake, o.now), end); ; o.now = min(max(o.wake, o.now+1), end) {
		o.did(o.machine.Advance(o.now))
		if o.now == end {
			return
		}
	}
}

// untilNextSend advances the time to the next request.
func (o *paperOwner) untilNextSend() *protocol.LeaseRequest {
	o.t.Helper()
	n := len(o.sent)
	for range 100 {
		o.now = o.wake
		o.did(o.machine.Advance(o.now))
		if len(o.sent) > n {
			return o.newest()
		}
	}
	o.t.Fatal("no request after 100 wakes")
	return nil
}

func (o *paperOwner) newest() *protocol.LeaseRequest { return o.sent[len(o.sent)-1].Request }

// reply returns the leader's next reply, to the owner's newest request.
func (o *paperOwner) reply(offers ...protocol.Offer) *protocol.LeaseReply {
	o.seq++
	return &protocol.LeaseReply{
		Namespace: "paper", Session: paperSession, Leader: "m", Term: 1,
		Seq: o.seq, Echo: o.newest().Seq, Timing: protocol.PaperTiming(), Offers: offers, Clock: o.now,
	}
}

func (o *paperOwner) receive(r *protocol.LeaseReply) {
	o.did(o.machine.Step(o.now, owner.Reply{LeaseReply: r}))
}

func (o *paperOwner) holds(l leasehold.Lease) bool {
	return o.machine.View().Held(o.now, l.Range.Start, l.Generation)
}

func (o *paperOwner) wantHeld(want bool, l leasehold.Lease, when string) {
	o.t.Helper()
	if got := o.holds(l); got != want {
		o.t.Errorf("%s: lease %v held is %t, want %t", when, l, got, want)
	}
}

// noted reports whether the last step emitted a note of this kind.
func (o *paperOwner) noted(what owner.Notable) bool {
	for _, a := range o.actions {
		if n, ok := a.(owner.Note); ok && n.What == what {
			return true
		}
	}
	return false
}

func lease(start, limit leasehold.Key, g leasehold.Generation) leasehold.Lease {
	return leasehold.Lease{Range: leasehold.Range{Start: start, Limit: limit}, Generation: g}
}

func grants(ls ...leasehold.Lease) []protocol.Offer   { return offers(true, ls) }
func renewals(ls ...leasehold.Lease) []protocol.Offer { return offers(false, ls) }

func offers(fresh bool, ls []leasehold.Lease) []protocol.Offer {
	var out []protocol.Offer
	for _, l := range ls {
		out = append(out, protocol.Offer{Lease: l, Fresh: fresh})
	}
	return out
}

// Centrifuge 2.1.1: owners send only to the leader. If it does not respond, they send to all managers
// until one replies, and then only to that one.
func TestPaperSendsToAllManagersWhileTheLeaderIsUnresponsive(t *testing.T) {
	o := newPaperOwner(t)
	if to := o.sent[0].To; to != "" {
		t.Errorf("the first request goes to %q, want all: no leader is known", to)
	}
	o.receive(o.reply())
	o.receive(o.reply())
	o.untilNextSend()
	if to := o.sent[len(o.sent)-1].To; to != "m" {
		t.Errorf("a renewal goes to %q, want the leader m", to)
	}
	o.untilNextSend() // without a reply
	if to := o.sent[len(o.sent)-1].To; to != "" {
		t.Errorf("the request after a timeout goes to %q, want all", to)
	}
	o.receive(o.reply())
	o.untilNextSend()
	if to := o.sent[len(o.sent)-1].To; to != "m" {
		t.Errorf("the request after a reply goes to %q, want the leader m", to)
	}
}

// Centrifuge 2.3: an owner sends a message every 15 seconds. Here the interval is up to an eighth
// shorter, so that a thousand owners do not send at the same time.
func TestPaperRenewsEvery15Seconds(t *testing.T) {
	o := newPaperHolder(t, lease(0, 9, 1))
	before := o.now
	for range 20 {
		o.untilNextSend()
		if gap := o.now.Sub(before); gap > 15*time.Second || gap < 15*time.Second*7/8 {
			t.Errorf("%v between two renewals, want 15 s or up to an eighth less", gap)
		}
		before = o.now
		o.receive(o.reply(renewals(lease(0, 9, 1))...))
	}
}

// Centrifuge 2.3: a lease expires needlessly only if three requests in a row are lost. This owner retries earlier
// without a reply, so that five must be lost within the same 60 seconds.
func TestPaperLostRenewals(t *testing.T) {
	l := lease(0, 9, 1)
	for lost := range 6 {
		o := newPaperHolder(t, l)
		granted := o.machine.View().Until
		for range lost {
			o.untilNextSend()
			o.wantHeld(true, l, "when a renewal is lost")
		}
		if o.wake < granted {
			o.untilNextSend()
			o.receive(o.reply(renewals(l)...))
		}
		o.advance(granted.Sub(o.now))
		o.wantHeld(lost < 5, l, "60 seconds after the last renewal that arrived")
	}
}

// Centrifuge 2.3: every request contains all leases that the owner wants to renew, so that it does not depend on
// earlier requests.
func TestPaperEveryRequestCarriesTheCompleteSet(t *testing.T) {
	a, b, c := lease(0, 2, 1), lease(2, 4, 2), lease(6, 9, 3)
	o := newPaperOwner(t)
	o.receive(o.reply())
	for _, set := range [][]leasehold.Lease{{a}, {a, b}, {a, b, c}, {a, c}, {c}, {}} {
		o.receive(o.reply(grants(set...)...))
		if diff := cmp.Diff(set, o.newest().Leases); diff != "" {
			t.Errorf("leases in the request after the grant (-want +got):\n%s", diff)
		}
		o.receive(o.reply(renewals(set...)...))
		if diff := cmp.Diff(set, o.untilNextSend().Leases); diff != "" {
			t.Errorf("leases in the next renewal (-want +got):\n%s", diff)
		}
	}
}

// Centrifuge 2.3, PRS 4.3: grants are distinguished from renewals. An owner that does not hold a lease, because it
// was restarted, rejects its renewal and sends a request without it at once.
func TestPaperRestartedOwnerRefusesARenewal(t *testing.T) {
	x := lease(0, 9, 7)
	o := newPaperOwner(t)
	o.receive(o.reply(renewals(x)...))
	o.wantHeld(false, x, "after a renewal of a lease that was never granted")
	if !o.noted(owner.NoteRefused) {
		t.Error("the refusal is not noted")
	}
	if r := o.newest(); r.Heard != o.seq || len(r.Leases) != 0 {
		t.Errorf("the next request is %+v, want it at once and without leases", r)
	}
	o.receive(o.reply(grants(x)...))
	o.wantHeld(true, x, "after a grant")
}

// Centrifuge 2.3: the generation shows whether a lease has been held without interruption. So a generation that
// was released is never held again, neither by a renewal nor by a grant.
func TestPaperReleasedGenerationIsNeverHeldAgain(t *testing.T) {
	old, next := lease(0, 9, 7), lease(0, 9, 8)
	for _, test := range []struct {
		name  string
		offer []protocol.Offer
	}{{"renewed", renewals(old)}, {"granted again", grants(old)}} {
		t.Run(test.name, func(t *testing.T) {
			o := newPaperHolder(t, old)
			o.receive(o.reply()) // recalled
			o.wantHeld(false, old, "after the recall")
			o.receive(o.reply(test.offer...))
			o.wantHeld(false, old, "when it is "+test.name)
			o.receive(o.reply(grants(next)...))
			o.wantHeld(true, next, "under a new generation")
			o.wantHeld(false, old, "under a new generation")
		})
	}
}

// PRS 4.3: whether a key is held, and has been held without interruption, is checked locally by comparing
// generations.
func TestPaperContinuousOwnership(t *testing.T) {
	l := lease(3, 9, 5)
	o := newPaperHolder(t, l)
	v := o.machine.View()
	if got, ok := v.Check(o.now, 3); !ok || got != l {
		t.Errorf("check of the first key: %v, %t, want %v", got, ok, l)
	}
	if _, ok := v.Check(o.now, 9); ok {
		t.Error("the first key after the range is held")
	}
	if !v.Held(o.now, 8, 5) || v.Held(o.now, 8, 4) || v.Held(o.now, 2, 5) {
		t.Error("held is true only for a key of the range and its generation")
	}
}

// Centrifuge 2.3.1: an owner holds a lease after it has received the manager's reply, for 60 seconds from the
// sending of the request. If the reply takes T seconds, 60-T are left.
func TestPaperLeaseRunsFromTheSendingOfTheRequest(t *testing.T) {
	l := lease(0, 9, 1)
	for _, flight := range []time.Duration{0, time.Second, 3 * time.Second} {
		o := newPaperOwner(t)
		o.receive(o.reply())
		sent := o.now
		grant := o.reply(grants(l)...)
		o.advance(flight)
		o.wantHeld(false, l, "before the grant has arrived")
		o.receive(grant)
		o.wantHeld(true, l, "after the grant has arrived")
		if left := o.machine.View().Until.Sub(o.now); left != 60*time.Second-flight {
			t.Errorf("reply after %v: %v are left, want 60 s less that", flight, left)
		}
		o.advance(sent.Add(60*time.Second - 1).Sub(o.now))
		o.wantHeld(true, l, "60 seconds after the request, less a nanosecond")
		o.advance(1)
		o.wantHeld(false, l, "60 seconds after the request")
	}
}

// Centrifuge 2.3.1: a lease ends by the owner's own clock, without a message or a
// timer.
func TestPaperLeaseEndsWithoutAnEvent(t *testing.T) {
	l := lease(0, 9, 1)
	o := newPaperHolder(t, l)
	o.now = o.machine.View().Until
	o.wantHeld(false, l, "at the deadline, without a step of the machine")
	o.receive(o.reply(renewals(l)...))
	o.wantHeld(false, l, "after a late renewal")
}

// Centrifuge 2.3.2: a recalled lease is dropped before the recall is acknowledged.
func TestPaperRecallIsAcknowledgedAfterTheDrop(t *testing.T) {
	keep, give := lease(0, 4, 1), lease(4, 9, 2)
	o := newPaperHolder(t, keep, give)
	o.receive(o.reply(renewals(keep)...))
	published := false
	for _, a := range o.actions {
		switch a := a.(type) {
		case owner.Publish:
			published = true
			if diff := cmp.Diff([]leasehold.Lease{keep}, a.View.Leases); diff != "" {
				t.Errorf("published leases (-want +got):\n%s", diff)
			}
		case owner.Send:
			if !published {
				t.Error("the acknowledgement is sent while checks still succeed")
			}
			if diff := cmp.Diff([]leasehold.Lease{keep}, a.Request.Leases); diff != "" {
				t.Errorf("acknowledged leases (-want +got):\n%s", diff)
			}
		}
	}
	if r := o.newest(); r.Heard != o.seq {
		t.Errorf("the newest request acknowledges %d, want the recall, %d", r.Heard, o.seq)
	}
}

// Centrifuge 2.3.2: a message carries the sender's sequence number and the newest one that the sender has received. A
// message that does not acknowledge the receiver's newest one is a race and is dropped. The receiver
// waits for a random time, and then sends a message that acknowledges it.
func TestPaperRacingMessageIsDropped(t *testing.T) {
	l := lease(0, 9, 1)
	o := newPaperOwner(t)
	o.receive(o.reply())
	racing := o.reply(grants(l)...) // <2,2>, delayed
	o.untilNextSend()               // <3,1> crosses it
	number := o.newest().Seq

	o.receive(racing)
	o.wantHeld(false, l, "after a reply that crossed a request")
	if !o.noted(owner.NoteRace) {
		t.Error("the race is not noted")
	}
	before := o.now
	r := o.untilNextSend()
	if wait := o.now.Sub(before); wait > paperBackoff {
		t.Errorf("it waits for %v, want at most %v", wait, paperBackoff)
	}
	if r.Seq != number+1 || r.Heard != racing.Seq {
		t.Errorf("it sends <%d,%d>, want <%d,%d>", r.Seq, r.Heard, number+1, racing.Seq)
	}
	if r.Applied == r.Heard {
		t.Error("the request reports the dropped reply as applied")
	}
}

// Centrifuge 2.3.2: a dropped message stays dropped, even if it is received again when it no longer crosses a
// request.
func TestPaperRacingMessageStaysDropped(t *testing.T) {
	l := lease(0, 9, 1)
	o := newPaperOwner(t)
	o.receive(o.reply())
	racing := o.reply(grants(l)...)
	o.untilNextSend()
	o.receive(racing)
	o.untilNextSend()
	again := *racing
	again.Echo = o.newest().Seq // as if it had crossed nothing
	o.receive(&again)
	o.wantHeld(false, l, "after a duplicate of the dropped reply")
}

// Centrifuge 2.3.2: messages carry a session nonce, so that an owner drops messages for an earlier session after
// a restart.
func TestPaperMessageForAnotherSessionIsDropped(t *testing.T) {
	l := lease(0, 9, 1)
	o := newPaperOwner(t)
	r := o.reply(grants(l)...)
	r.Session = leasehold.Session{2}
	o.receive(r)
	o.wantHeld(false, l, "after a grant to another session")
	if o.newest().Heard != 0 || !o.noted(owner.NoteForeign) {
		t.Error("a reply for another session is acknowledged")
	}
}

// Centrifuge 2.1.2: each pool of servers has its own namespace and table. A process may be in two pools:
// messages of one do not affect the other.
func TestPaperMessageForAnotherNamespaceIsDropped(t *testing.T) {
	l := lease(0, 9, 1)
	o := newPaperOwner(t)
	r := o.reply(grants(l)...)
	r.Namespace = "other"
	o.receive(r)
	o.wantHeld(false, l, "after a grant in another namespace")
}

// PRS 4.2 and 4.3: the manager also has a nonce, so that owners drop stale messages of a crashed
// manager. Here the nonce is the leader's term.
func TestPaperMessageOfAnEarlierLeaderIsDropped(t *testing.T) {
	mine, theirs := lease(0, 4, 1), lease(4, 9, 2)
	o := newPaperHolder(t, mine)
	stale := o.reply(grants(theirs)...)
	stale.Seq += 100
	o.seq = 0
	takeover := o.reply(renewals(mine)...)
	takeover.Leader, takeover.Term = "n", 2
	o.receive(takeover)
	o.wantHeld(true, mine, "after the new leader has renewed it")

	stale.Echo = o.newest().Seq
	o.receive(stale)
	o.wantHeld(false, theirs, "after a grant by the leader of an earlier term")
	o.wantHeld(true, mine, "after a message of the leader of an earlier term")
}
