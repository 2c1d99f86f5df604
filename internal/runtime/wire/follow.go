package wire

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// FromLookupRequest encodes a request of a lookup, without the number of the lookup, which the manager assigns.
func FromLookupRequest(r *protocol.LookupRequest) *leaseholdv1.FollowRequest {
	return &leaseholdv1.FollowRequest{
		Version:   Version,
		Namespace: string(r.Namespace),
		Seq:       uint64(r.Seq),
		Lsn:       uint64(r.LSN),
		Term:      uint64(r.Term),
		Crosses:   r.Crosses,
	}
}

// ToLookupRequest decodes a request of the lookup with a number. It does not check the version: see [CheckClient].
func ToLookupRequest(r *leaseholdv1.FollowRequest, lookup uint64) (*protocol.LookupRequest, error) {
	out := &protocol.LookupRequest{
		Namespace: leasehold.Namespace(r.GetNamespace()),
		Lookup:    lookup,
		Seq:       protocol.Seq(r.GetSeq()),
		LSN:       leasehold.LSN(r.GetLsn()),
		Term:      leasehold.Term(r.GetTerm()),
		Crosses:   r.GetCrosses(),
	}
	return checked(out, out.Validate())
}

// FromLookupReply encodes a reply to a lookup. For a broadcast use [EncodeUpdate].
func FromLookupReply(r *protocol.LookupReply) *leaseholdv1.FollowResponse {
	update := &leaseholdv1.Update{
		Namespace: string(r.Namespace),
		Manager:   string(r.Leader),
		Term:      uint64(r.Term),
		Echo:      uint64(r.Echo),
		Lsn:       uint64(r.LSN),
		Age:       int64(r.Age),
		Leads:     r.Leads,
	}
	if len(r.Changes) > 0 {
		update.Changes = FromChanges(r.From, r.Changes)
		removeDeathHashes(update.Changes.GetHolders())
	}
	if r.Snapshot != nil {
		update.Table = FromTable(r.Snapshot)
		removeDeathHashes(update.Table.GetHolders())
	}
	if r.Crossing != nil {
		update.Crossing = fromCrossing(r.Crossing)
	}
	return &leaseholdv1.FollowResponse{Version: Version, Kind: &leaseholdv1.FollowResponse_Update{Update: update}}
}

// removeDeathHashes removes what only leaders and their store need.
func removeDeathHashes(holders []*leaseholdv1.Holder) {
	for _, h := range holders {
		h.DeathHash = nil
	}
}

// ToLookupReply decodes a reply to a lookup. The From of a reply without changes is 0.
func ToLookupReply(u *leaseholdv1.Update, l protocol.Limits) (*protocol.LookupReply, error) {
	out := &protocol.LookupReply{
		Namespace: leasehold.Namespace(u.GetNamespace()),
		Leader:    storage.ManagerID(u.GetManager()),
		Term:      leasehold.Term(u.GetTerm()),
		Echo:      protocol.Seq(u.GetEcho()),
		LSN:       leasehold.LSN(u.GetLsn()),
		Age:       time.Duration(u.GetAge()),
		Leads:     u.GetLeads(),
	}
	var err error
	if changes := u.GetChanges(); len(changes.GetKinds()) > 0 {
		out.From = leasehold.LSN(changes.GetFrom())
		if out.Changes, err = ToChanges(changes, l); err != nil {
			return nil, err
		}
	}
	if u.GetTable() != nil {
		if out.Snapshot, err = ToTable(u.GetTable(), l); err != nil {
			return nil, err
		}
	}
	if c := u.GetCrossing(); c != nil {
		if out.Crossing, err = toCrossing(c); err != nil {
			return nil, err
		}
	}
	return checked(out, out.Validate(l))
}

func fromCrossing(c *table.Crossing) *leaseholdv1.Crossing {
	out := &leaseholdv1.Crossing{From: uint64(c.Gap.From), After: uint64(c.Gap.After), Base: uint64(c.Gap.Base), Newest: uint64(c.Gap.Newest)}
	for i := range c.Silent {
		out.Silent = append(out.Silent, c.Silent[i][:])
	}
	for _, start := range c.Unproven {
		out.Unproven = append(out.Unproven, uint64(start))
	}
	return out
}

// toCrossing validates little: only the table that it applies to can check it.
func toCrossing(c *leaseholdv1.Crossing) (*table.Crossing, error) {
	out := &table.Crossing{Gap: toGap(c)}
	for _, b := range c.GetSilent() {
		var s leasehold.Session
		if len(b) != len(s) {
			return nil, badTable("a session of %d bytes, want %d", len(b), len(s))
		}
		copy(s[:], b)
		out.Silent = append(out.Silent, s)
	}
	for _, start := range c.GetUnproven() {
		out.Unproven = append(out.Unproven, leasehold.Key(start))
	}
	return out, nil
}
