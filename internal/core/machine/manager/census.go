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

// A Census is how a diskless leader reconstructs the lease table after a takeover. It collects the claims of the
// owners, renews their leases, and grants nothing. The resulting table is the initial state of a [Machine]. It is
// not safe for concurrent use, and the actions that Step and Advance return are valid until the next call.
//
// An owner that has received a message of this leader drops messages of earlier leaders. From then on its claims
// are exact: it holds these leases, and no other owner can. An earlier request may be stale. Its leases are renewed
// too, since an owner refuses leases that it does not have. If no exact claim covers a range, an inexact one counts
// as the holder.
//
// The census ends when exact claims cover all keys, or when every lease of an earlier leader has expired. Ranges
// without a claim are free then.
type Census struct {
	cfg       Config
	out       []Action
	term      leasehold.Term
	authority mono.Instant
	seq       protocol.Seq
	end       mono.Instant // every lease that this leader did not renew has expired by this time
	witnesses map[leasehold.Session]*witness
	// surveyed is the number of keys with exact claims.
	surveyed float64
	over     bool
}

// A witness is a session that has sent a request in this term.
type witness struct {
	holder *table.Holder
	echo   protocol.Seq      // sequence number of its newest request
	exact  bool              // the newest request acknowledges a message of this leader
	leases []leasehold.Lease // claims of the newest request
	until  mono.Instant      // when the leases that this leader renewed expire
	// handed and imports are moves that were in progress at the takeover, as far as they are proven.
	handed  []protocol.MoveReport
	imports []protocol.Import
}

// NewCensus returns the census of a leader that took over before now, in term, and may act until authority. The
// configuration must be valid.
func NewCensus(now mono.Instant, cfg Config, term leasehold.Term, authority mono.Instant) (*Census, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Census{
		cfg: cfg, term: term, authority: authority, seq: cfg.Takeover.FirstSeq,
		end: now.Add(max(cfg.Timing.Hold(), cfg.Promised)), witnesses: make(map[leasehold.Session]*witness),
	}, nil
}

// Conclude ends the wait for owners: no lease of an earlier leader is held.
func (c *Census) Conclude(now mono.Instant) { c.end = now }

// Seq returns the sequence number of the newest message to any owner.
func (c *Census) Seq() protocol.Seq { return c.seq }

// Witnesses returns the number of sessions that have sent a request. It is at most twice MaxOwners.
func (c *Census) Witnesses() int { return len(c.witnesses) }

// Over reports whether the census has ended; [Census.Lead] returns the machine that follows it.
func (c *Census) Over() bool { return c.over }

// Step handles a [Request] or an [Authority] at now, and ignores other events. It returns the actions, in order,
// and when to call Advance at the latest.
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

// Advance handles the passage of time.
func (c *Census) Advance(now mono.Instant) ([]Action, mono.Instant) {
	c.out = emptied(c.out)
	return c.finish(now)
}

func (c *Census) finish(now mono.Instant) ([]Action, mono.Instant) {
	switch {
	case now < c.end && !c.over:
		return c.out, c.end
	case now < c.authority:
		c.over = true // without authority the census cannot end: there may be another leader
	}
	return c.out, mono.Never
}

func (c *Census) emit(a Action) { c.out = append(c.out, a) }

// request validates an owner's request, then applies it and replies.
func (c *Census) request(now mono.Instant, r *protocol.LeaseRequest) {
	switch {
	case c.over || now >= c.end:
		return // for the machine that follows
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

// possible reports whether all leases in a request were granted before this term.
func (c *Census) possible(r *protocol.LeaseRequest) bool {
	_, newest := storage.First(c.term)
	for _, l := range r.Leases {
		if l.Generation > newest {
			return false
		}
	}
	return true
}

// witness returns the witness of a session, and creates one if the limit allows. A session beyond the limit gets no
// reply: a refusal would end its leases.
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

// applyRequest stores the claims of a request. The claims of an owner that leaves are exact, because it accepts no
// further leases.
func (c *Census) applyRequest(w *witness, r *protocol.LeaseRequest) {
	if w.exact {
		c.surveyed -= keys(w.leases)
	}
	w.echo, w.leases = r.Seq, r.Leases
	if r.Suspended {
		w.leases = nil // the range may have been granted to another owner since, and there is no table to check
	}
	w.exact = r.Term == c.term || r.Leaving
	if w.exact {
		c.surveyed += keys(w.leases)
		c.applyMoves(w, r)
	}
}

// applyMoves stores the moves that a witness has proof of. Proof given once in this term is enough: no owner
// expires during the census. A move that the witness no longer reports has ended.
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

// answer renews the leases of a witness. An owner that leaves gets the final reply, unless it has handed state
// over: it must repeat that report until the move is recorded.
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

// keys returns the approximate number of keys of leases.
func keys(leases []leasehold.Lease) float64 {
	n := 0.0
	for _, l := range leases {
		n += float64(l.Range.Last()-l.Range.Start) + 1
	}
	return n
}

// Left returns the remaining time of the census at most.
func (c *Census) Left(now mono.Instant) time.Duration { return max(0, c.end.Sub(now)) }
