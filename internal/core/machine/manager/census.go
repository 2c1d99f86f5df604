package manager

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A Census is how a leader without a store finds out what there is: it asks the
// owners, renews what they have, and grants nothing. What comes of it is the
// table from which a [Machine] leads on. It is not safe for concurrent use, and
// the actions that Step and Advance return are valid until the next call.
//
// An owner that has heard the leader takes no message of an earlier one. So what
// it says from then on is exact: it has that, and nobody else can have it. What it
// said before may be an old message. It is renewed all the same, because an owner
// refuses what it does not have; and where nobody is known to have a range, it
// counts as held by who has said so.
//
// The census is over when all keys are known to be held, or when it has lasted
// for as long as any owner may believe in what an earlier leader has told it. Then
// what was not reported is free.
type Census struct {
	cfg       Config
	out       []Action
	term      leasehold.Term
	authority mono.Instant
	seq       protocol.Seq
	end       mono.Instant // nobody has anything then that we did not renew
	witnesses map[leasehold.Session]*witness
	// surveyed is how many keys those have together who are proven to have them.
	surveyed float64
	over     bool
}

// A witness is a session that has spoken.
type witness struct {
	holder *table.Holder
	echo   protocol.Seq      // its newest request
	exact  bool              // it had heard us when it sent that
	leases []leasehold.Lease // what it has said
	until  mono.Instant      // when what we have renewed ends
	// handed and imports are moves that were not over when the leader before was
	// gone, as far as they may be believed.
	handed  []protocol.MoveReport
	imports []protocol.Import
}

// NewCensus returns the census of a leader that has taken over before now, in
// term, and may act until authority. The configuration must be valid.
func NewCensus(now mono.Instant, cfg Config, term leasehold.Term, authority mono.Instant) (*Census, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Census{
		cfg: cfg, term: term, authority: authority, seq: cfg.Takeover.FirstSeq,
		end: now.Add(max(cfg.Timing.Hold(), cfg.Promised)), witnesses: make(map[leasehold.Session]*witness),
	}, nil
}

// Conclude says that nobody has anything that an earlier leader has granted.
func (c *Census) Conclude(now mono.Instant) { c.end = now }

// Seq returns the number of our newest message to anyone.
func (c *Census) Seq() protocol.Seq { return c.seq }

// Witnesses returns how many sessions have spoken: it is bounded by twice
// MaxOwners.
func (c *Census) Witnesses() int { return len(c.witnesses) }

// Over reports whether the census is; then [Census.Lead] goes on from there.
func (c *Census) Over() bool { return c.over }

// Step handles a [Request] or an [Authority] at now; others mean nothing to it.
// It returns what to do, in order, and when to call Advance at the latest.
func (c *Census) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	c.out = emptied(c.out)
	switch e := e.(type) {
	case Request:
		c.request(now, e.LeaseRequest)
	case Authority:
		c.authority = max(c.authority, e.Until)
	}
	return c.finish(now)
}

// Advance handles the passing of time.
func (c *Census) Advance(now mono.Instant) ([]Action, mono.Instant) {
	c.out = emptied(c.out)
	return c.finish(now)
}

func (c *Census) finish(now mono.Instant) ([]Action, mono.Instant) {
	switch {
	case now < c.end && !c.over:
		return c.out, c.end
	case now < c.authority:
		c.over = true // without authority it is not for us to judge: there may be another leader
	}
	return c.out, mono.Never
}

func (c *Census) emit(a Action) { c.out = append(c.out, a) }

// request handles an owner's message: whether it counts, then what it says.
func (c *Census) request(now mono.Instant, r *protocol.LeaseRequest) {
	switch {
	case c.over || now >= c.end:
		return // it is for whoever leads on
	case r.Validate(c.cfg.Limits) != nil || !c.possible(r):
		c.emit(Note{What: NoteBadMessage, Term: r.Term, Seq: r.Seq})
		return
	case r.Namespace != c.cfg.Namespace:
		c.emit(Note{What: NoteForeign, Owner: r.Holder.Owner})
		return
	case r.Term > c.term+c.cfg.termJump():
		c.emit(Note{What: NoteBadMessage, Owner: r.Holder.Owner, Term: r.Term, Seq: r.Seq})
		return
	case r.Term > c.term:
		c.emit(Outranked{r.Term})
		return
	case now >= c.authority:
		c.emit(Note{What: NoteNoAuthority, Owner: r.Holder.Owner})
		return
	}
	w := c.witness(r)
	if w == nil {
		return
	}
	if r.Seq <= w.echo {
		c.emit(Note{What: NoteDuplicate, Owner: r.Holder.Owner, Seq: r.Seq, NewestSeq: w.echo})
		return
	}
	c.applyRequest(w, r)
	c.answer(now, w, r)
	c.over = c.complete()
}

// possible reports whether all that a request names was granted before our term.
func (c *Census) possible(r *protocol.LeaseRequest) bool {
	_, newest := storage.First(c.term)
	for _, l := range r.Leases {
		if l.Generation > newest {
			return false
		}
	}
	return true
}

// witness returns the witness of a session, making one if there is room. One for
// whom there is none is not answered: a refusal would cost it what it has.
func (c *Census) witness(r *protocol.LeaseRequest) *witness {
	w := c.witnesses[r.Holder.Session]
	if w != nil && w.holder.Owner != r.Holder.Owner {
		c.emit(Note{What: NoteForeign, Owner: r.Holder.Owner})
		return nil
	}
	if w == nil && len(c.witnesses) >= 2*c.cfg.MaxOwners {
		c.emit(Note{What: NoteFull, Owner: r.Holder.Owner, Owners: len(c.witnesses)})
		return nil
	}
	if w == nil {
		w = &witness{holder: r.Holder}
		c.witnesses[r.Holder.Session] = w
		c.emit(Note{What: NoteHello, Owner: r.Holder.Owner})
	}
	return w
}

// applyRequest takes in what a witness says. One that leaves takes nothing any more,
// whomever it has heard.
func (c *Census) applyRequest(w *witness, r *protocol.LeaseRequest) {
	if w.exact {
		c.surveyed -= keys(w.leases)
	}
	w.echo, w.leases = r.Seq, r.Leases
	if r.Suspended {
		w.leases = nil // its range may have been given to another since, and no table tells
	}
	w.exact = r.Term == c.term || r.Leaving
	if w.exact {
		c.surveyed += keys(w.leases)
		c.applyMoves(w, r)
	}
}

// applyMoves remembers which moves a witness has proof of. That it had it once in
// our term is enough: nobody is given up while we ask. What it speaks of no more
// is over.
func (c *Census) applyMoves(w *witness, r *protocol.LeaseRequest) {
	_, newest := storage.First(c.term)
	var handed []protocol.MoveReport
	for _, rep := range r.Moves {
		known := slices.IndexFunc(w.handed, func(h protocol.MoveReport) bool { return h.Ticket == rep.Ticket })
		switch {
		case rep.State != protocol.MoveDone || rep.Newest == 0 || rep.Newest > newest:
		case known >= 0:
			handed = append(handed, w.handed[known])
		case rep.Backing != 0:
			handed = append(handed, rep)
		}
	}
	var imports []protocol.Import
	for _, in := range r.Imports {
		known := slices.IndexFunc(w.imports, func(i protocol.Import) bool { return i.Ticket == in.Ticket })
		switch {
		case known >= 0:
			imports = append(imports, w.imports[known])
		case in.Backing != 0:
			imports = append(imports, in)
		}
	}
	w.handed, w.imports = handed, imports
}

// answer renews what a witness has. One that leaves is let go, unless it has
// handed something over: that it must repeat until it is recorded.
func (c *Census) answer(now mono.Instant, w *witness, r *protocol.LeaseRequest) {
	if r.Leaving && len(w.handed) > 0 {
		return
	}
	c.seq++
	reply := &protocol.LeaseReply{
		Namespace: c.cfg.Namespace, Session: r.Holder.Session, Leader: c.cfg.Self, Term: c.term,
		Seq: c.seq, Echo: r.Seq, Timing: c.cfg.Timing, Clock: now, Collecting: true, Goodbye: r.Leaving,
		Draining: r.Draining,
	}
	for _, l := range w.leases {
		reply.Offers = append(reply.Offers, protocol.Offer{Lease: l})
	}
	w.until = now.Add(c.cfg.Timing.Hold())
	c.out = append(c.out, Send{w.holder.Owner, reply})
}

// keys returns how many keys leases have, roughly.
func keys(leases []leasehold.Lease) float64 {
	n := 0.0
	for _, l := range leases {
		n += float64(l.Range.Last()-l.Range.Start) + 1
	}
	return n
}

// Left returns how long the census may still last.
func (c *Census) Left(now mono.Instant) time.Duration { return max(0, c.end.Sub(now)) }
