package demo

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/witness"
	"github.com/leasehold-dev/leasehold/owner"
)

// leases is what a service asks of the owner library.
type leases interface {
	Check(key leasehold.Key) (owner.Lease, bool)
	Held(lease owner.Lease) bool
}

// A presence service knows the status of users, in memory alone. It does what
// package leasehold obliges a server to do, and tells a witness about it.
type presence struct {
	leases  leases
	session leasehold.Session
	witness func(...witness.Record) error
	worked  func(leasehold.Key) // is told of each operation that was carried out
	// await waits if a key is about to be served here. Check says whether it is.
	await func(context.Context, leasehold.Key) bool
	// suspended says of a key that is not held whether the lease on it is suspended.
	suspended func(leasehold.Key) bool

	statuses statuses
	lines    switchboard
}

func newPresence(l leases, session leasehold.Session, witness func(...witness.Record) error) *presence {
	return &presence{
		leases: l, session: session, witness: witness, worked: func(leasehold.Key) {},
		await:     func(context.Context, leasehold.Key) bool { return false },
		suspended: func(leasehold.Key) bool { return false },
	}
}

// set stores a status unless a later one is stored already, and returns what is
// stored.
func (p *presence) set(key leasehold.Key, number uint64, text string) (status, error) {
	return p.operate(key, setting(number, text))
}

func (p *presence) get(key leasehold.Key) (status, error) { return p.operate(key, getting) }

// look returns the number of a status, for those who ask again and again: it is
// get with nobody told, and allocates nothing. The numbers are those of a server's
// obligations in package leasehold.
func (p *presence) look(key leasehold.Key) (number uint64, owned bool) {
	b := p.statuses.of(key)
	b.mu.Lock()                         // 5
	lease, owned := p.leases.Check(key) // 1
	s := b.known[key]
	b.mu.Unlock()
	switch {
	case !owned || s.generation() > lease.Generation:
		return 0, false
	case s.generation() < lease.Generation: // 2
		s.number = 0
	}
	if !p.leases.Held(lease) { // 4
		return 0, false
	}
	p.worked(key)
	return s.number, true
}

// An operation acts on a status, and reports whether it has changed it.
type operation func(*status) bool

func getting(*status) bool { return false }

func setting(number uint64, text string) operation {
	return func(s *status) bool {
		later := number > s.number
		if later {
			s.number, s.text = number, text
		}
		return later
	}
}

// operate carries out one operation, and tells the witness.
func (p *presence) operate(key leasehold.Key, do operation) (status, error) {
	s, seen, err := p.carryOut(key, do, witness.Timed)
	if seen.Generation == 0 {
		return status{}, err
	}
	// A Check that succeeded is told, whatever it was good for.
	if untold := p.witness(seen); untold != nil {
		return status{}, untold
	}
	return s, err
}

// A caller calls a function, and says when: [witness.Timed], or untimed where nobody
// asks, because reading the clock takes longer than a check.
type caller func(f func()) witness.Span

func untimed(f func()) witness.Span {
	f()
	return witness.Span{}
}

// carryOut carries out one operation on the status of a key, and returns what
// the witness should know. The numbers are those of a server's obligations in
// package leasehold.
func (p *presence) carryOut(key leasehold.Key, do operation, call caller) (status, witness.Record, error) {
	seen := witness.Record{Key: key, Session: p.session}
	s, lease, err := p.checked(key, do, call, &seen)
	if lease.Generation == 0 {
		return status{}, seen, err
	}
	var held bool
	if when := call(func() { held = p.leases.Held(lease) }); held { // 4
		seen.Held = when
	}
	switch {
	case err != nil:
		return status{}, seen, err
	case !held:
		return status{}, seen, p.refusal(key)
	}
	p.worked(key)
	return s, seen, nil
}

// checked does what must be done under the lock. The lease is zero if there is
// none.
func (p *presence) checked(key leasehold.Key, do operation, call caller, seen *witness.Record) (status, owner.Lease, error) {
	b := p.statuses.of(key)
	b.mu.Lock() // 5
	defer b.mu.Unlock()
	var lease owner.Lease
	var ok bool
	seen.Check = call(func() { lease, ok = p.leases.Check(key) }) // 1
	if !ok {
		return status{}, owner.Lease{}, p.refusal(key)
	}
	seen.Generation = lease.Generation
	s, known := b.known[key]
	if s.generation() > lease.Generation {
		return status{}, lease, p.refusal(key)
	}
	discarded := s.generation() < lease.Generation
	if discarded { // 2
		s = status{stamp: b.stampOf(lease.Generation)}
	}
	changed := do(&s) || known && discarded // 3
	if !changed {
		return s, lease, nil
	}
	if !known {
		if err := p.statuses.room(1); err != nil {
			return status{}, lease, err
		}
	}
	p.statuses.put(b, key, s)
	return s, lease, nil
}

// refusal is why an operation is not carried out, or its result is of no use.
func (p *presence) refusal(key leasehold.Key) error {
	if p.suspended(key) {
		return leasehold.Errorf("presence", leasehold.Suspended, key.String(), "this server waits for a manager, and keeps the status")
	}
	return leasehold.Errorf("presence", leasehold.NotOwner, key.String(), "another server has this user")
}

// clear forgets what was stored under leases that have ended. It saves memory
// and nothing else: operate discards such state by itself.
func (p *presence) clear(ended []leasehold.Lease) {
	for _, l := range ended {
		p.statuses.clear(l)
	}
}
