package manager

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/partition"
)

// drained reports whether an operator has drained the owner.
func drained(p *peer) bool { return p.exit.draining }

// input returns the input of the policy, with drained as the set of drained owners.
//
// Retiring owners are left out. If no other owner is there, those that are only drained take part, since otherwise
// keys would have no owner.
func (m *Machine) input(now mono.Instant, drained func(*peer) bool) partition.Input {
	in := partition.Input{Current: m.plan.current, Limits: m.limits(), Loads: m.members.loads(m.cfg.MinLoad), Budget: m.plan.churn.budget(now, &m.cfg)}
	var spare []partition.Member
	for _, s := range m.members.seats {
		p := s.incumbent
		member := partition.Member{Owner: s.owner, Weight: p.holder.Weight}
		switch {
		case !p.member() || p.exit.parting():
		case drained(p):
			spare = append(spare, member)
		default:
			in.Members = append(in.Members, member)
		}
	}
	if len(in.Members) == 0 {
		in.Members = spare
	}
	return in
}

// mostCells bounds the resolution of the load of all owners together: the leader is blocked while the policy runs.
const mostCells = 1 << 17

// loads merges the loads that the owners have reported, for keys that they still hold.
// There are none below a mean load per owner.
func (mb *membership) loads(least float64) partition.Loads {
	lists := make([][]partition.Cell, 0, len(mb.seats))
	var all partition.Loads
	for _, s := range mb.seats {
		if p := s.incumbent; p.loads != nil {
			lists = append(lists, p.cells(max(16, mostCells/len(mb.seats))))
			all.Hot = p.appendHot(all.Hot)
		}
	}
	all.Cells = merged(lists)
	var sum float64
	for _, c := range all.Cells {
		sum += c.Rate
	}
	if sum < least*float64(len(mb.seats)) {
		return partition.Loads{}
	}
	slices.SortFunc(all.Hot, func(a, b partition.HotKey) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// merged merges sorted lists into one sorted list, in pairs.
func merged(lists [][]partition.Cell) []partition.Cell {
	for len(lists) > 1 {
		half := lists[:0]
		for i := 0; i < len(lists); i += 2 {
			if i+1 == len(lists) {
				half = append(half, lists[i])
				break
			}
			half = append(half, mergeTwo(lists[i], lists[i+1]))
		}
		lists = half
	}
	if len(lists) == 0 {
		return nil
	}
	return lists[0]
}

func mergeTwo(a, b []partition.Cell) []partition.Cell {
	out := make([]partition.Cell, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].Range.Start <= b[0].Range.Start {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// cells returns the peer's load cells that it still holds, about most of them at most: adjacent cells in one lease
// are merged. A part of a cell that it no longer holds is removed with its share of the load.
func (p *peer) cells(most int) []partition.Cell {
	together := (len(p.loads.Cells) + most - 1) / most
	out := make([]partition.Cell, 0, min(len(p.loads.Cells), most)+len(p.held.leases))
	leases, joined := p.held.leases, 0
	for _, c := range p.loads.Cells {
		for len(leases) > 0 && leases[0].Range.Last() < c.Range.Start {
			leases, joined = leases[1:], 0
		}
		for i, l := range leases {
			part, ok := l.Range.Intersect(c.Range)
			if !ok {
				break
			}
			rate := c.Rate * sizeOf(part) / sizeOf(c.Range)
			if n := len(out); i == 0 && joined > 0 && joined < together && out[n-1].Range.Limit == part.Start {
				out[n-1].Range.Limit = part.Limit
				out[n-1].Rate += rate
				joined++
				continue
			}
			out = append(out, partition.Cell{Range: part, Rate: rate})
			joined = 1
		}
	}
	return out
}

func (p *peer) appendHot(to []partition.HotKey) []partition.HotKey {
	leases := p.held.leases
	for _, h := range p.loads.Hot {
		for len(leases) > 0 && leases[0].Range.Last() < h.Key {
			leases = leases[1:]
		}
		if len(leases) > 0 && leases[0].Range.Contains(h.Key) {
			to = append(to, h)
		}
	}
	return to
}

// sizeOf returns the number of keys of a range.
func sizeOf(r leasehold.Range) float64 { return float64(r.Size()) }

// churn is the schedule of policy runs because of loads, and the budget of keys that they may move for balance.
type churn struct {
	bucket partition.Bucket
	at     mono.Instant // when it was last filled
	next   mono.Instant // when the policy runs next; Never if there are no new loads
	// unlimited: an operator has ordered the next policy run without a budget.
	unlimited bool
}

func (c *churn) begin(now mono.Instant) { *c = churn{at: now, next: mono.Never} }

// loadsReported schedules a policy run within a period.
func (c *churn) loadsReported(now mono.Instant, every time.Duration) {
	if c.next == mono.Never {
		c.next = now.Add(every)
	}
}

// due reports whether a policy run is due, and removes it from the schedule.
func (c *churn) due(now mono.Instant) bool {
	if now < c.next {
		return false
	}
	c.next = mono.Never
	return true
}

// budget returns the share of all keys that may be moved now.
func (c *churn) budget(now mono.Instant, cfg *Config) float64 {
	c.bucket.Churn, c.bucket.Every = cfg.Churn, cfg.Rebalance
	c.bucket = c.bucket.After(now.Sub(c.at))
	c.at = now
	return c.bucket.Level()
}

// spend takes the keys that a decision moves between members out of the bucket.
func (c *churn) spend(in partition.Input, want partition.Assignment) {
	if in.Current == nil {
		return
	}
	stays := make(map[leasehold.OwnerID]bool, len(in.Members))
	for _, m := range in.Members {
		stays[m.Owner] = true
	}
	var moved float64
	for _, r := range partition.Diff(in.Current, want) {
		if stays[r.From] {
			moved += sizeOf(r.Range)
		}
	}
	c.bucket = c.bucket.Spend(moved / (1 << 64))
}
