package manager

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Adjacent ranges of one owner that were granted at different times are separate leases, because they have
// different generations. Joining and leaving owners create such seams. Most disappear when a later owner takes
// several adjacent leases. They accumulate if the newest owner is always the one that leaves, for instance a broken
// server that is replaced repeatedly.
//
// When the table has nearly twice as many ranges as the policy needs, the longest stretches are merged: all leases
// of a stretch but one at its end are recalled and granted again as one. Each stretch is then two leases, and the
// table at most twice as large as needed. The state of the recalled leases is lost and reported as a loss. This is
// the cost of a bounded table.
//
// An owner that can move state loses nothing: its stretches move from itself to itself, and become one lease each.

// compaction is the schedule of the next attempt to merge leases.
type compaction struct {
	lsn       leasehold.LSN // the table at the last attempt that found nothing to merge
	notBefore mono.Instant  // earliest time of the next attempt
}

// crowded reports whether the table has more than 15/8 of the ranges that the policy needs, and exceeds it by more
// than Config.Seams.
func (m *Machine) crowded() bool {
	needed := m.plan.desired.Len()
	return m.state.table.Len() > needed+max(needed*7/8, m.cfg.Seams)
}

// A stretch is a sequence of adjacent leases of one peer to be merged into two: the larger of its first and last
// lease stays. If their state can be moved, all become one.
type stretch struct {
	p      *peer
	recall []leasehold.Lease
}

// gain is the number of ranges that the table loses by merging the stretch.
func (s *stretch) gain() int { return len(s.recall) - 1 }

func (s *stretch) whole() leasehold.Range {
	return leasehold.Range{Start: s.recall[0].Range.Start, Limit: s.recall[len(s.recall)-1].Range.Limit}
}

// compact merges leases until the table is small enough. At most one compaction runs at a time.
func (m *Machine) compact(now mono.Instant) {
	if !m.crowded() || now < m.compaction.notBefore {
		return
	}
	if m.state.table.LSN() == m.compaction.lsn {
		return // the last attempt found nothing, and the table is unchanged
	}
	if slices.ContainsFunc(m.moves.all, func(mv *move) bool { return mv.from == mv.to }) {
		return
	}
	var all []stretch
	complete := true
	for _, s := range m.members.seats {
		p := s.incumbent
		if len(p.held.recalled) > 0 {
			return
		}
		if p.exit.parting() || len(p.moves.out) > 0 {
			complete = false
			continue
		}
		if p.member() && p.acks.echo != 0 && len(p.held.fresh) == 0 {
			all = append(all, m.plan.stretches(p, m.cfg.Log.BatchChanges/2)...)
		} else {
			complete = false // the owner may have mergeable leases later
		}
	}
	if !complete {
		m.compaction.notBefore = now.Add(m.cfg.Timing.Renew) // skipped owners send no request before
		m.wakeAt(m.compaction.notBefore)
	}
	slices.SortStableFunc(all, func(a, b stretch) int { return cmp.Compare(b.gain(), a.gain()) })
	if complete && (len(all) == 0 || all[0].gain() <= 0) {
		m.compaction.lsn = m.state.table.LSN()
	}
	excess := m.state.table.Len() - m.plan.desired.Len()*7/4
	for i := range all {
		if all[i].gain() <= 0 || excess <= 0 {
			return
		}
		excess -= all[i].gain()
		m.merge(now, &all[i])
	}
}

func (m *Machine) merge(now mono.Instant, s *stretch) {
	if s.p.moves.mover != "" {
		if len(s.p.moves.out) < m.cfg.Moves {
			m.start(now, s.p, s.p, s.whole())
		}
		return
	}
	m.emit(Note{What: NoteCompacted, Owner: s.p.holder.Owner, Leases: len(s.recall)})
	if s.p.held.recalled == nil {
		s.p.held.recalled = make(map[leasehold.Lease]bool)
	}
	for _, l := range s.recall {
		s.p.held.recalled[l] = true
	}
	s.p.held.plain = false
	m.touch(s.p)
}

// stretches returns the stretches of three or more leases that p keeps. At most most leases of one are recalled at
// a time: one batch must record them to grant them as one.
func (pl *assignment) stretches(p *peer, most int) []stretch {
	var out []stretch
	for i := 0; i < len(p.held.leases); {
		j := i + 1
		for j < len(p.held.leases) && p.held.leases[j-1].Range.Limit == p.held.leases[j].Range.Start && pl.plannedFor(p, p.held.leases[j].Range) {
			j++
		}
		if row := p.held.leases[i:j]; len(row) > 2 && pl.plannedFor(p, row[0].Range) {
			first, last := row[0], row[len(row)-1]
			switch {
			case p.moves.mover != "":
				out = append(out, stretch{p, row})
				i = j
				continue
			case first.Range.Size() > last.Range.Size():
				row = row[1:]
			default:
				row = row[:len(row)-1]
			}
			out = append(out, stretch{p, row[:min(len(row), most)]})
		}
		i = j
	}
	return out
}
