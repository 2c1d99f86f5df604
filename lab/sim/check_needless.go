package sim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// An ended lease is one whose owner still has its state, and whose range must go to another owner.
type ended struct {
	leasehold.Lease
	holder *table.Holder
	label  string
	at     int64 // when the leader sent the commit
}

// checkNeedless is I11 at the store. If a lease ends with its state, its process
// has ended, or has dropped it for a reason of its own or because of a recall, or
// its range goes to another owner next. No outage of managers, store or network, and no failover,
// costs a living owner its state. While the policy is broken, and until the plan after that, there is no check, because
// no plan gives the range to another owner. A commit can take effect long after the leader sent it.
func (o *oracle) checkNeedless(s *space, t *truth, c *table.Change, sent int64) {
	if c.Kind != table.Vacated {
		t.moveCarried(c)
		o.checkRegrant(s, t, c)
		return
	}
	if c.Cause == leasehold.CauseExpired {
		t.expiredAt[c.Holder.Session] = o.Now
	}
	if o.store.era > 0 {
		return // a restored store may have lost leases, which costs their state
	}
	if o.unplanned() || o.deleted(s) {
		return
	}
	o.Checks[I11Needless]++
	if c.Cause != leasehold.CauseExpired && o.checkCarried(s, t, c) {
		return
	}
	if h := s.home[c.Holder.Session]; o.keepsState(h, t, c) {
		t.ending = append(t.ending, ended{leasehold.Lease{Range: c.Range, Generation: c.Generation}, c.Holder, h.label, sent})
	}
}

// unplanned reports whether the policy is broken, or was when it was last asked for a plan.
func (o *oracle) unplanned() bool {
	at := o.nemesis.misplannedAt
	return o.nemesis.policyBroken || at != 0 && time.Duration(o.Now-at) < 2*simTiming().Renew
}

// keepsState reports whether the owner of a lease that ends, or the target of its move, still has the state.
func (o *oracle) keepsState(h *ownerHost, t *truth, c *table.Change) bool {
	if h == nil || !h.alive || h.asleep || h.beyond || h.leaving || h.holder.Session != c.Holder.Session {
		return false
	}
	if h.forgone[c.Generation] && !t.carries(c) {
		return false
	}
	g := t.grants[c.Generation]
	return g != nil && !o.contested(h) && slices.ContainsFunc(g.parts, c.Range.Overlaps)
}

// contested reports whether another process uses an owner's name, or has used it since.
func (o *oracle) contested(h *ownerHost) bool {
	if h.space.latest[h.holder.Owner] != h.holder.Session {
		return true
	}
	return slices.ContainsFunc(h.space.owners, func(other *ownerHost) bool {
		return other != h && other.alive && other.holder.Owner == h.holder.Owner
	})
}

// checkRegrant checks the next owner of the range of a lease that has ended.
func (o *oracle) checkRegrant(s *space, t *truth, c *table.Change) {
	var left []ended
	for i := len(t.history) - 1; i >= 0 && t.history[i].at > o.Now-int64(storeWait); i-- {
		if v := &t.history[i]; v.Kind == table.Vacated && v.Range.Overlaps(c.Range) && v.Holder.Session != c.Holder.Session {
			t.servedAt[v.Holder.Session] = o.Now
		}
	}
	for _, e := range t.ending {
		if e.Range.Overlaps(c.Range) && e.holder.Session == c.Holder.Session && !o.taken(s, &e) {
			o.Violated(I11Needless, "%s: %v of %s ended, although its owner runs, and the same session gets it again at generation %d", s.name, e.Lease, e.label, c.Generation)
			return
		}
		granted := []leasehold.Lease{{Range: c.Range, Generation: e.Generation}}
		for _, l := range protocol.Missing([]leasehold.Lease{e.Lease}, granted) {
			e.Lease = l
			left = append(left, e)
		}
	}
	t.ending = left
}

// taken reports whether a lease may have ended because the leader wanted to grant its range to another owner, which
// has died or become silent since, or has got other ranges of the session: a decision stays, although a
// commit takes a while and the leader may expire the other owner meanwhile.
func (o *oracle) taken(s *space, e *ended) bool {
	if at := o.truth(s).servedAt[e.holder.Session]; at != 0 && at > e.at-int64(storeWait) {
		return true
	}
	since := e.at - int64(storeWait) - int64(simTTL)
	return slices.ContainsFunc(s.owners, func(h *ownerHost) bool {
		return h.died > since || h.holder.Session != e.holder.Session && h.heardAt > since && o.silent(h)
	})
}

// checkNeedlessLeft is I11 at the end of the world: each range went to another owner, or its owner has ended.
func (o *oracle) checkNeedlessLeft() {
	for _, s := range o.spaces {
		for _, e := range o.truth(s).ending {
			if h := s.home[e.holder.Session]; h.alive && h.holder.Session == e.holder.Session && !o.taken(s, &e) {
				o.Violated(I11Needless, "%s: %v of %s ended, although its owner runs, and no other owner got it", s.name, e.Lease, e.label)
				return
			}
		}
	}
}

// noteDeleted records when a namespace was last seen deleted: in the store, or in the catalog of a manager,
// which may be older.
func (o *oracle) noteDeleted(c *storage.Catalog) {
	if c == nil {
		return
	}
	for _, s := range o.spaces {
		if c.Entry(s.name) != nil && c.Find(s.name) == nil {
			o.truth(s).deletedAt = o.Now
		}
	}
}

// deleted reports whether a namespace is deleted, or was created again recently: its owners were refused
// meanwhile, and may be expired because of that.
func (o *oracle) deleted(s *space) bool {
	catalog := o.store.catalog
	if n := len(o.catalogs); n > 0 {
		catalog = o.catalogs[n-1]
	}
	at := o.truth(s).deletedAt
	return catalog.Find(s.name) == nil || at != 0 && o.Now-at < 3*int64(simTiming().Hold())
}
