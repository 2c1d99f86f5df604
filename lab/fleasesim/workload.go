package fleasesim

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// A stake is the state of a process and a resource, for the application and the oracle.
type stake struct {
	asked   wish
	asking  wish  // while the machine is called with it
	tried   int64 // true time of the oldest try that a reply may be about; 0 if there is none
	watched bool

	held  bool // it was notified that it has the lease, and not of its end
	lease flease.Lease
	since int64

	given uint64 // the highest fence that it may have released
}

// A wish is an application's request that is not released.
type wish uint8

const (
	nothing wish = iota
	try
	hold
)

// holds reports whether the process has a valid lease: it was notified, and the lease has not expired on
// either of its clocks.
func (p *process) holds(r *resource) bool {
	s := &p.stakes[r.index]
	now := p.time()
	return s.held && now.Mono < s.lease.Until.Mono && now.Wall <= s.lease.Until.Wall
}

func (p *process) member(r *resource) bool { return slices.Contains(r.members, p.id) }

func (p *process) act() {
	if !p.runs() || p.machine.Retired() {
		return
	}
	if p.after.phase != faulty {
		p.after.act(p)
		return
	}
	r := p.resources[p.Random.IntN(len(p.resources))]
	if !p.member(r) {
		return
	}
	switch dice := p.Random.IntN(12); {
	case p.stakes[r.index].asked != nothing && dice < 3:
		p.release(r)
	case dice < 7:
		p.request(r, hold)
	case dice < 11:
		p.request(r, try)
	default:
		p.watch(r, !p.stakes[r.index].watched)
	}
}

func (p *process) request(r *resource, what wish) {
	s, now := &p.stakes[r.index], p.observe()
	call, name := p.machine.Acquire, "wants"
	if what == try {
		call, name = p.machine.Try, "tries"
		if s.tried == 0 {
			s.tried = p.Now
		}
	}
	p.Printf("%s %s %s", p.label, name, r.name)
	s.asked, s.asking = max(s.asked, what), what
	defer func() { s.asking = nothing }()
	if err := call(now, r.name); err != nil {
		p.Violated(L6Bounded, "%s cannot request %s: %v", p.label, r.name, err)
		return
	}
	p.handleOutput(now)
}

// observe reads the clocks before a request: resulting notices are about earlier requests.
func (p *process) observe() flease.Time {
	now := p.time()
	p.machine.Observe(now)
	p.handleOutput(now)
	return now
}

func (p *process) release(r *resource) {
	s, now := &p.stakes[r.index], p.observe()
	p.Printf("%s releases %s", p.label, r.name)
	if s.held {
		s.given = max(s.given, s.lease.Fence)
	} else {
		s.given = ^uint64(0) // it may have released a higher one without a notice
	}
	s.asked, s.held = nothing, false
	p.machine.Release(now, r.name)
	p.handleOutput(now)
}

func (p *process) watch(r *resource, on bool) {
	now := p.time()
	p.stakes[r.index].watched = on
	if err := p.machine.Watch(now, r.name, on); err != nil {
		p.Violated(L6Bounded, "%s cannot watch %s: %v", p.label, r.name, err)
		return
	}
	p.handleOutput(now)
}
