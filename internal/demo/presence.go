package demo

import (
	"maps"
	"sync"

	"github.com/leasehold-dev/leasehold"
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
	witness func(...record) error

	mu       sync.Mutex
	statuses map[leasehold.Key]status // of maxStatuses users at most
}

// maxStatuses bounds the memory of a service.
const maxStatuses = 1 << 17

// A status is what is known about a user. The number rises with each status
// that the user sets: a request that was delayed does not undo a later one.
type status struct {
	generation leasehold.Generation // of the lease under which it was stored
	number     uint64               // 0 if nothing is known
	text       string
}

func newPresence(l leases, session leasehold.Session, witness func(...record) error) *presence {
	return &presence{leases: l, session: session, witness: witness, statuses: make(map[leasehold.Key]status)}
}

// set stores a status unless a later one is stored already, and returns what is
// stored.
func (p *presence) set(key leasehold.Key, number uint64, text string) (status, error) {
	return p.operate(key, func(s *status) {
		if number > s.number {
			s.number, s.text = number, text
		}
	})
}

func (p *presence) get(key leasehold.Key) (status, error) {
	return p.operate(key, func(*status) {})
}

// operate carries out one operation on the status of a key. The numbers are
// those of a server's obligations in package leasehold.
func (p *presence) operate(key leasehold.Key, do func(*status)) (status, error) {
	seen := record{key: key, session: p.session}
	s, lease, refused := p.checked(key, do, &seen)
	if lease.Generation == 0 {
		return status{}, refused
	}
	var held bool
	if call := timed(func() { held = p.leases.Held(lease) }); held { // 4
		seen.held = call
	}
	// A Check that succeeded is told, whatever it was good for.
	if err := p.witness(seen); err != nil {
		return status{}, err
	}
	switch {
	case refused != nil:
		return status{}, refused
	case !held:
		return status{}, notOwner(key)
	}
	return s, nil
}

// checked does what must be done under the lock. The lease is zero if there is
// none.
func (p *presence) checked(key leasehold.Key, do func(*status), seen *record) (status, owner.Lease, error) {
	p.mu.Lock() // 5
	defer p.mu.Unlock()
	var lease owner.Lease
	var ok bool
	seen.check = timed(func() { lease, ok = p.leases.Check(key) }) // 1
	if !ok {
		return status{}, owner.Lease{}, notOwner(key)
	}
	seen.generation = lease.Generation
	s, known := p.statuses[key]
	if s.generation > lease.Generation {
		return status{}, lease, notOwner(key)
	}
	if !known && len(p.statuses) >= maxStatuses {
		return status{}, lease, leasehold.Errorf("presence", leasehold.Limit, key.String(), "%d users are all that fit in", maxStatuses)
	}
	if s.generation < lease.Generation { // 2
		s = status{}
	}
	do(&s) // 3
	s.generation = lease.Generation
	p.statuses[key] = s
	return s, lease, nil
}

func notOwner(key leasehold.Key) error {
	return leasehold.Errorf("presence", leasehold.NotOwner, key.String(), "another server has this user")
}

// clear forgets what was stored under leases that have ended. It saves memory
// and nothing else: operate discards such state by itself.
func (p *presence) clear(ended []leasehold.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.statuses, func(key leasehold.Key, s status) bool {
		for _, l := range ended {
			if l.Range.Contains(key) && s.generation <= l.Generation {
				return true
			}
		}
		return false
	})
}
