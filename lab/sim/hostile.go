package sim

import (
	"math"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// sendInvalid sends messages that no correct peer sends. None is one that a machine must accept: against
// peers with valid credentials there is authentication, not a lease protocol.
func (n *nemesis) sendInvalid() bool {
	h := n.hosts[n.Random.IntN(len(n.hosts))]
	if !h.alive {
		return false
	}
	for range 1 + n.Random.IntN(4) {
		n.Later(n.Net.Latency(), h.endpoint, 0, n.invalidMessage())
	}
	return true
}

func (n *nemesis) invalidMessage() any {
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
		// A history of an old leader that differs from the log.
		at := n.oracle.truths[s.index].table.LSN()
		return &protocol.LookupReply{
			Namespace: s.name, Term: max(n.store.record.Term, 1), Leader: n.store.record.Leader, LSN: at + 1, From: at,
			Changes: []table.Change{{LSN: at + 1, Kind: table.Granted, Generation: 0, Holder: holder}},
		}
	case 10:
		return &protocol.LookupRequest{Namespace: "elsewhere", Seq: 1}
	case 11:
		return n.stolenSession(s)
	case 12:
		// A lookup that claims a later LSN than there is, of this term or the one before.
		at, term := n.oracle.truths[s.index].table.LSN(), n.store.record.Term
		return &protocol.LookupRequest{Namespace: s.name, Seq: 1, LSN: at + leasehold.LSN(n.Random.IntN(9)), Term: term - min(term, leasehold.Term(n.Random.IntN(2))), Lookup: math.MaxUint64}
	}
	return &protocol.LeaseRequest{Namespace: "elsewhere", Seq: 1, Holder: holder}
}

// stolenSession returns the message of an owner that leaves, in the session of another owner. Sessions are in
// the table, which is public. A leader without a store only knows sessions that it has received requests of,
// and accepts the first holder of each.
func (w *world) stolenSession(s *space) any {
	_, victim := w.oracle.truths[s.index].table.At(leasehold.Key(w.Random.Uint64()))
	if victim.Holder == nil || w.cfg.Diskless {
		return &protocol.LookupRequest{Namespace: "elsewhere", Seq: 1}
	}
	thief := *victim.Holder
	thief.Owner = "liar"
	return &protocol.LeaseRequest{Namespace: s.name, Seq: math.MaxUint64, Holder: &thief, Leaving: true}
}
