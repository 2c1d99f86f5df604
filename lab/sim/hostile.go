package sim

import (
	"math"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// slander sends a message that no honest peer would send. It is never one that
// a machine could take for true: against liars who know our secrets there is
// authentication, not a lease protocol.
func (n *nemesis) slander() bool {
	h := n.hosts[n.Random.IntN(len(n.hosts))]
	if !h.alive {
		return false
	}
	for range 1 + n.Random.IntN(4) {
		n.Later(n.Net.Latency(), h.endpoint, 0, n.lie())
	}
	return true
}

func (n *nemesis) lie() any {
	s := n.spaces[n.Random.IntN(len(n.spaces))]
	holder := &table.Holder{Owner: "liar", Session: leasehold.Session{1}, Addr: "nowhere", Weight: 1}
	unsorted := []leasehold.Lease{{Range: leasehold.Range{Start: 9}, Generation: 1}, {Range: leasehold.Range{Start: 1, Limit: 5}, Generation: 2}}
	switch n.Random.IntN(14) {
	case 0:
		return &protocol.LeaseRequest{Namespace: s.name, Seq: 1}
	case 1:
		return &protocol.LeaseRequest{Namespace: s.name, Seq: 1, Holder: holder, Leases: unsorted}
	case 2:
		return &protocol.LeaseRequest{Namespace: s.name, Seq: 1, Holder: &table.Holder{Owner: "x", Session: leasehold.Session{2}, Addr: "y", Weight: math.NaN()}}
	case 3:
		return &protocol.LeaseRequest{Namespace: s.name, Seq: 1, Holder: holder, Term: math.MaxUint64}
	case 4:
		return &protocol.LeaseReply{Namespace: s.name, Session: leasehold.Session{9}, Term: 1, Seq: 1, Timing: simTiming()}
	case 5:
		return &protocol.LeaseReply{Namespace: s.name, Term: math.MaxUint64}
	case 6:
		return &protocol.LookupRequest{Namespace: s.name}
	case 7:
		return &protocol.LookupRequest{Namespace: s.name, Seq: 1, LSN: math.MaxUint64, Lookup: math.MaxUint64}
	case 8:
		return &protocol.LookupReply{Namespace: s.name, LSN: 7}
	case 9:
		// An old leader's history, as if the log had gone another way.
		at := n.oracle.truths[s.index].table.LSN()
		return &protocol.LookupReply{
			Namespace: s.name, Term: max(n.store.record.Term, 1), Leader: n.store.record.Leader, LSN: at + 1, From: at,
			Changes: []table.Change{{LSN: at + 1, Kind: table.Granted, Generation: 0, Holder: holder}},
		}
	case 10:
		return &protocol.LookupRequest{Namespace: "elsewhere", Seq: 1}
	case 11:
		return n.theft(s)
	case 12:
		// Somebody who pretends to have heard more than there was, from this leader or the one before.
		at, term := n.oracle.truths[s.index].table.LSN(), n.store.record.Term
		return &protocol.LookupRequest{Namespace: s.name, Seq: 1, LSN: at + leasehold.LSN(n.Random.IntN(9)), Term: term - min(term, leasehold.Term(n.Random.IntN(2))), Lookup: math.MaxUint64}
	}
	return &protocol.LeaseRequest{Namespace: "elsewhere", Seq: 1, Holder: holder}
}

// theft says that an owner leaves, in its session and under the name of another: sessions
// are in the table, for everybody to read. A leader without a store knows only sessions that
// it has heard of, and believes whoever comes first.
func (w *world) theft(s *space) any {
	_, victim := w.oracle.truths[s.index].table.At(leasehold.Key(w.Random.Uint64()))
	if victim.Holder == nil || w.cfg.Diskless {
		return &protocol.LookupRequest{Namespace: "elsewhere", Seq: 1}
	}
	thief := *victim.Holder
	thief.Owner = "liar"
	return &protocol.LeaseRequest{Namespace: s.name, Seq: math.MaxUint64, Holder: &thief, Leaving: true}
}
