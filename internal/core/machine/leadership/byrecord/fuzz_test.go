package byrecord_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// A tape is fuzzed bytes, read as decisions. At its end it reads zeros.
type tape struct{ data []byte }

func (t *tape) byte() byte {
	if len(t.data) == 0 {
		return 0
	}
	b := t.data[0]
	t.data = t.data[1:]
	return b
}

// below returns a number from 0 to n-1.
func (t *tape) below(n int) int { return int(t.byte()) % n }

var fuzzSession = leasehold.Session{1}

const (
	fuzzTTL   = 3 * time.Second
	fuzzDrift = mono.Drift(1.2)
)

// A fuzzedCandidate is a manager in an election with rivals, on a store whose replies are late,
// wrong or lost.
type fuzzedCandidate struct {
	t       *testing.T
	tape    tape
	machine *byrecord.Machine
	now     mono.Instant
	wake    mono.Instant

	history []storage.Record // all stored records, by version
	swap    *byrecord.Swap   // in flight
	proven  []byrecord.Swap  // in flight, and already shown by a watch event
	late    []byrecord.Swap  // lost, or may still happen
	reads   int              // reads in flight

	sent   map[sending]mono.Instant         // first send time of a record
	first  map[storage.Version]mono.Instant // first observation of a version
	slept  mono.Instant
	floor  leasehold.Term // highest reported term
	led    leasehold.Term
	leads  bool
	until  mono.Instant
	silent bool // it has resigned
}

// sending identifies the candidate's own records.
type sending struct {
	prev storage.Version
	term leasehold.Term
	beat uint64
	gone bool
}

func newFuzzedCandidate(t *testing.T, data []byte) *fuzzedCandidate {
	c := &fuzzedCandidate{
		t: t, tape: tape{data}, now: mono.Instant(time.Hour), history: make([]storage.Record, 1),
		sent: make(map[sending]mono.Instant), first: make(map[storage.Version]mono.Instant),
	}
	m, err := byrecord.New(c.now, byrecord.Config{Self: "me", Session: fuzzSession, TTL: fuzzTTL, Drift: fuzzDrift, Rand: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	c.machine = m
	c.did(m.Advance(c.now))
	return c
}

// run executes the tape.
func (c *fuzzedCandidate) run() {
	for len(c.tape.data) > 0 {
		c.pass()
		switch b := c.tape.below(32); {
		case b < 8:
			c.read()
		case b < 18:
			c.answerSwap()
		case b < 21: // a watch event, possibly late
			c.see(c.history[c.tape.below(len(c.history))])
		case b < 24:
			c.rival()
		case b < 25:
			c.land()
		case b < 26:
			c.answerProven()
		case b < 27:
			c.supersede()
		case b < 28:
			c.slept = c.now
			c.step(byrecord.Slept{})
		case b < 29:
			if c.tape.below(8) == 0 {
				c.step(byrecord.Resign{})
			}
		case b < 30:
			c.step(byrecord.ReadFailed{})
		case b < 31:
			if c.swap == nil { // unsolicited
				c.step(byrecord.Swapped{Outcome: storage.Outcome(c.tape.below(5)), Version: storage.Version(c.tape.byte())})
			}
		default:
			c.see(storage.Record{}) // an empty store
		}
	}
}

// pass advances the clock: not at all, a little, up to the wake time, or by seconds.
func (c *fuzzedCandidate) pass() {
	switch b := c.tape.byte(); {
	case b < 100:
	case b < 200:
		c.now = c.now.Add(time.Duration(b) * time.Millisecond)
	case b < 250:
		c.now = max(c.now, min(c.wake, c.now.Add(time.Minute)))
	default:
		c.now = c.now.Add(time.Duration(b-249) * time.Second)
	}
	c.did(c.machine.Advance(c.now))
}

func (c *fuzzedCandidate) step(e byrecord.Event) { c.did(c.machine.Step(c.now, e)) }

func (c *fuzzedCandidate) newest() storage.Record { return c.history[len(c.history)-1] }

func (c *fuzzedCandidate) see(r storage.Record) {
	if _, known := c.first[r.Version]; !known {
		c.first[r.Version] = c.now
	}
	c.step(byrecord.Seen{Record: r})
}

// read answers a read with the stored record.
func (c *fuzzedCandidate) read() {
	if c.reads == 0 {
		return
	}
	c.reads--
	if c.tape.below(8) == 0 {
		c.step(byrecord.ReadFailed{})
		return
	}
	c.see(c.newest())
}

// write stores a record if prev is the stored version.
func (c *fuzzedCandidate) write(prev storage.Version, r storage.Record) bool {
	if prev != c.newest().Version {
		return false
	}
	r.Version = prev + 1
	c.history = append(c.history, r)
	return true
}

// answerSwap decides the outcome of a swap, and its reply.
func (c *fuzzedCandidate) answerSwap() {
	if c.swap == nil {
		return
	}
	s := *c.swap
	c.swap = nil
	switch c.tape.below(6) {
	case 0: // lost or delayed
		c.late = append(c.late, s)
		c.step(byrecord.Swapped{Swap: s, Outcome: storage.Unknown})
	case 1:
		c.write(s.Prev, s.New)
		c.step(byrecord.Swapped{Swap: s, Outcome: storage.Unknown})
	default:
		if !c.write(s.Prev, s.New) {
			c.step(byrecord.Swapped{Swap: s, Outcome: storage.Conflict})
			return
		}
		c.first[c.newest().Version] = c.now
		c.step(byrecord.Swapped{Swap: s, Outcome: storage.Done, Version: c.newest().Version})
	}
}

// answerProven replies to a swap that a watch event has shown already.
func (c *fuzzedCandidate) answerProven() {
	if len(c.proven) == 0 {
		return
	}
	s := c.proven[0]
	c.proven = c.proven[1:]
	c.step(byrecord.Swapped{Swap: s, Outcome: storage.Outcome(1 + c.tape.below(3)), Version: s.Prev + 1})
}

// land executes a delayed swap.
func (c *fuzzedCandidate) land() {
	if len(c.late) > 0 {
		s := c.late[0]
		c.late = c.late[1:]
		c.write(s.Prev, s.New)
	} else if c.swap != nil {
		c.write(c.swap.Prev, c.swap.New) // a watch event may show it before the reply
	}
}

// rival lets another manager take over, renew or resign.
func (c *fuzzedCandidate) rival() {
	r := c.newest()
	switch {
	case r.Leader == "rival" && !r.Resigned:
		r.Beat++
		r.Resigned = c.tape.below(3) == 0
	default:
		r = storage.Record{Version: r.Version, Term: r.Term + 1, Leader: "rival", Session: leasehold.Session{2}, Beat: 1}
	}
	c.write(r.Version, r)
}

func (c *fuzzedCandidate) supersede() {
	by := c.newest().Term + leasehold.Term(c.tape.below(3))
	if c.tape.below(16) == 0 {
		by = protocol.MaxTerm
	}
	c.floor = max(c.floor, by)
	c.step(byrecord.Outranked{By: by})
}

// did checks the actions, and that the machine does not spin.
func (c *fuzzedCandidate) did(actions []byrecord.Action, wake mono.Instant) {
	c.t.Helper()
	const patience = 16
	for range patience {
		for _, a := range actions {
			c.check(a)
		}
		if got := c.machine.Leads(c.now); got != (c.leads && c.now < c.until) {
			c.t.Fatalf("at %v: Leads = %t, but its actions: %t, until %v", c.now, got, c.leads, c.until)
		}
		if c.wake = wake; wake > c.now {
			return
		}
		actions, wake = c.machine.Advance(c.now)
	}
	c.t.Fatalf("at %v the wake time is still %v, after %d calls of Advance", c.now, wake, patience)
}

func (c *fuzzedCandidate) check(a byrecord.Action) {
	c.t.Helper()
	switch a := a.(type) {
	case byrecord.Read:
		c.reads = min(c.reads+1, 3)
	case byrecord.Swap:
		c.swaps(a)
	case byrecord.Lead:
		if c.leads || a.Term <= c.led {
			c.t.Fatalf("leads in term %d, after term %d", a.Term, c.led)
		}
		c.leads, c.led = true, a.Term
		c.acts(a.Term, a.Until)
	case byrecord.Extend:
		if !c.leads || a.Until < c.until {
			c.t.Fatalf("Extend until %v; it led until %v: %t", a.Until, c.until, c.leads)
		}
		c.acts(c.led, a.Until)
	case byrecord.StepDown:
		if !c.leads {
			c.t.Fatal("StepDown of a standby")
		}
		c.leads = false
	case byrecord.Resigned:
		if c.leads {
			c.t.Fatal("Resigned while leading")
		}
		c.silent = true
	case byrecord.Note:
		if int(a.What) >= byrecord.Notables() || a.What.String() == "" {
			c.t.Fatalf("a note without a name: %d", a.What)
		}
	}
}

// acts checks the authority: TTL from the send time of a stored record, and no longer.
func (c *fuzzedCandidate) acts(term leasehold.Term, until mono.Instant) {
	c.t.Helper()
	c.until = until
	var most mono.Instant
	for _, r := range c.history {
		if r.Leader != "me" || r.Term != term || r.Resigned {
			continue
		}
		sent := c.sent[sending{r.Version - 1, r.Term, r.Beat, r.Resigned}]
		if sent < c.slept {
			sent = c.slept.Add(-fuzzTTL) // its send time is unknown after the sleep
		}
		most = max(most, sent.Add(fuzzTTL))
	}
	if until > most {
		c.t.Fatalf("leads in term %d until %v, but its records last until %v", term, until, most)
	}
}

// swaps checks a swap: one at a time, a renewal of the own term, or a new term when no manager can
// have authority.
func (c *fuzzedCandidate) swaps(s byrecord.Swap) {
	c.t.Helper()
	if c.swap != nil && !c.written(*c.swap) || c.silent {
		c.t.Fatalf("swap %+v, with %+v in flight, resigned: %t", s, c.swap, c.silent)
	}
	if c.swap != nil {
		c.proven = append(c.proven, *c.swap)
	}
	c.swap = &s
	id := sending{s.Prev, s.New.Term, s.New.Beat, s.New.Resigned}
	if _, again := c.sent[id]; again {
		return
	}
	c.sent[id] = c.now
	before := c.history[s.Prev]
	switch {
	case s.New.Leader != "me" || s.New.Session != fuzzSession || s.New.Version != 0:
		c.t.Fatalf("swap to %+v", s.New)
	case s.New.Term == before.Term && before.Leader == "me" && s.New.Beat == before.Beat+1 && !before.Resigned: // a renewal
	case s.New.Term <= before.Term || s.New.Term <= c.floor && c.floor > before.Term || s.New.Resigned:
		c.t.Fatalf("after %+v, with reported term %d: swap to %+v", before, c.floor, s.New)
	case before.Version == 0 || before.Resigned || before.Session == fuzzSession:
	case c.now < c.first[s.Prev].Add(fuzzDrift.Stretch(fuzzTTL)):
		c.t.Fatalf("at %v: takeover from %+v, first observed at %v", c.now, before, c.first[s.Prev])
	}
}

// written reports whether a swap has happened, so that a watch event may have shown it.
func (c *fuzzedCandidate) written(s byrecord.Swap) bool {
	if int(s.Prev+1) >= len(c.history) {
		return false
	}
	r := c.history[s.Prev+1]
	r.Version = 0
	return r == s.New
}

func FuzzElection(f *testing.F) {
	f.Add([]byte{})
	random := rand.New(rand.NewPCG(11, 12))
	for range 40 {
		data := make([]byte, 600)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { newFuzzedCandidate(t, data).run() })
}
