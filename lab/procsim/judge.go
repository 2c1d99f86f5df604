package procsim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// judgeNecessity is I11 for a reported loss: the lease of a living owner expires only if a fault has made it silent, and its
// range goes to another owner.
func (s *space) judgeNecessity(c *caller, l *leasehold.Loss) {
	if l.Cause != leasehold.CauseExpired && l.Cause != leasehold.CauseRefused || s.world.restored || s.world.diskless {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	at := slices.IndexFunc(s.servers, func(v *server) bool { return leasehold.OwnerID(v.name) == l.Owner })
	if at < 0 {
		return
	}
	if v := s.servers[at]; v.up() != nil && now.After(v.due().Add(s.stale)) && now.After(later(c.due(), s.world.group.due()).Add(s.stale)) {
		s.world.violated("I11", "a lease ended although nothing was wrong with its owner", "%s receives {%v}, %v after the last fault of the owner", c.name, l, now.Sub(v.due()))
	}
}

// judgeEnd is I6 at the end, when all faults are over.
func (s *space) judgeEnd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := leasehold.LSN(0)
	for _, c := range s.callers {
		c.mu.Lock()
		if c.lookup != nil {
			newest = max(newest, c.lookup.LSN())
		}
		c.mu.Unlock()
	}
	for _, c := range s.callers {
		c.mu.Lock()
		s.judgeCaller(c, newest)
		c.mu.Unlock()
	}
}

// judgeCaller checks that a lookup finds the owners.
func (s *space) judgeCaller(c *caller, newest leasehold.LSN) {
	if c.lookup == nil {
		s.world.violated("I6", "a lookup does not open", "%s has no table", c.name)
		return
	}
	if at := c.lookup.LSN(); at != newest {
		s.world.violated("I6", "a lookup is behind", "%s is at LSN %d, and another lookup at %d", c.name, at, newest)
	}
	for _, key := range s.keys {
		addr, _ := c.lookup.Find(key)
		if !slices.ContainsFunc(s.servers, func(v *server) bool {
			if v.addr() != addr || v.up() == nil {
				return false
			}
			_, ok := v.owner.Check(key)
			return ok
		}) {
			s.world.violated("I6", "a lookup finds no owner", "%s finds %q for key %v, which does not have it", c.name, addr, key)
			return
		}
	}
}

// newestLSN returns the highest LSN of a lookup.
func (s *space) newestLSN() (lsn leasehold.LSN) {
	for _, c := range s.callers {
		c.mu.Lock()
		if c.lookup != nil {
			lsn = max(lsn, c.lookup.LSN())
		}
		c.mu.Unlock()
	}
	return lsn
}
