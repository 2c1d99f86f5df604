package manager

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Neighbouring ranges of one owner that were granted at different times are
// separate leases, because they have different generations. Owners that come
// and go leave such seams behind. Most vanish again when a later newcomer takes
// a stretch that has several; but if it is always the newest owner that leaves,
// as it is when a broken server is replaced again and again, they pile up.
//
// So when the table has become nearly twice as large as the policy needs, the
// worst stretches are mended: all leases of a stretch but one at its end are
// recalled, and come back to their owner as one. Then each stretch is two
// leases, and the table at most twice what is needed. What was held in the
// recalled ones is lost, and reported so. That is the price of a bounded table,
// and nobody pays it before it is due.
//
// An owner that can move state pays nothing: its stretches are moved from itself
// to itself, and come out as one lease each.

// compaction is when the table was last made smaller, so that it is not tried in vain.
type compaction struct {
	lsn       leasehold.LSN // the table that we last tried to make smaller
	notBefore mono.Instant  // when to try again
}

// crowded reports whether the table has far more ranges than the policy needs:
// 15/8 as many, and more than a small number in any case.
func (m *Machine) crowded() bool {
	needed := m.plan.desired.Len()
	return m.state.table.Len() > needed+max(needed*7/8, m.cfg.Seams)
}

// A stretch is a row of leases of one peer, each starting where the one before
// ends, that are to become two: the larger of those at its ends stays. All of
// them become one if their state can be moved.
type stretch struct {
	p      *peer
	recall []leasehold.Lease
}

// gain is how many ranges the table loses by mending the stretch.
func (s *stretch) gain() int { return len(s.recall) - 1 }

func (s *stretch) whole() leasehold.Range {
	return leasehold.Range{Start: s.recall[0].Range.Start, Limit: s.recall[len(s.recall)-1].Range.Limit}
}

// compact recalls what it takes to make the table small again. One such effort
// at a time is enough.
func (m *Machine) compact(now mono.Instant) {
	if !m.crowded() || now < m.compaction.notBefore {
		return
	}
	if m.state.table.LSN() == m.compaction.lsn {
		return // there was nothing to gain, and nothing has changed since
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
			complete = false // it may have something later
		}
	}
	if !complete {
		m.compaction.notBefore = now.Add(m.cfg.Timing.Renew) // whoever was left out will not be heard at once
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
		m.mend(now, &all[i])
	}
}

func (m *Machine) mend(now mono.Instant, s *stretch) {
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

// stretches returns the rows of three or more leases that p is to keep. No more
// than most of one are recalled at a time: they must be recorded in one batch to
// become one.
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
