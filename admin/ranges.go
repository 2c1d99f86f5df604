package admin

import (
	"context"
	"errors"
	"io"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Ranges are the lease table of a namespace, or a part of it, in the order of keys.
type Ranges struct {
	Namespace string        `json:"namespace"`
	LSN       leasehold.LSN `json:"lsn,string"`
	// Begun is the LSN at which a leader without a store started the table: losses up to it are
	// unknown. 0 with a store.
	Begun  leasehold.LSN `json:"begun,omitempty,string"`
	Ranges []Range       `json:"ranges"`
}

// A Range is one range of a lease table. Without an owner its generation is 0.
type Range struct {
	Interval
	Share      float64              `json:"share"` // of the key space, 0 to 1
	Generation leasehold.Generation `json:"generation,string"`
	Owner      string               `json:"owner"`
	Addr       string               `json:"addr"`
	LostAt     leasehold.LSN        `json:"lostAt,string"` // the change at which state was last lost; 0: never
	// LostUnknown: losses before LostAt are unknown, because a leader without a store started its
	// table there.
	LostUnknown bool `json:"lostUnknown,omitempty"`
}

// maxRanges exceeds the number of ranges that a policy may create.
const maxRanges = 1 << 22

// Ranges returns the lease table of a namespace, or the ranges of one owner if it is not "". The
// table arrives in pieces; a million ranges take about a hundred megabytes.
func (c *Client) Ranges(ctx context.Context, namespace, owner string) (Ranges, error) {
	return read(ctx, c, func(ctx context.Context, s service) (Ranges, error) {
		return ranges(ctx, s, namespace, owner)
	})
}

func ranges(ctx context.Context, s service, namespace, owner string) (Ranges, error) {
	all := Ranges{Namespace: namespace, Ranges: []Range{}}
	stream, err := s.ListRanges(ctx, &leaseholdv1.ListRangesRequest{Version: wire.Version, Namespace: namespace, Owner: owner})
	if err != nil {
		return all, err
	}
	for {
		piece, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		case len(all.Ranges)+len(piece.GetRanges()) > maxRanges:
			return all, leasehold.Errorf("list ranges", leasehold.ErrLimit, namespace, "more than %d ranges", maxRanges)
		}
		all.LSN, all.Begun = leasehold.LSN(piece.GetLsn()), leasehold.LSN(piece.GetBegun())
		for _, r := range piece.GetRanges() {
			all.Ranges = append(all.Ranges, rangeOf(r, piece.GetBegun()))
		}
	}
}

// rangeOf converts a range of a table that begins at an LSN.
func rangeOf(r *leaseholdv1.HeldRange, begun uint64) Range {
	keys := leaseInterval(r.GetLease())
	return Range{
		Interval: keys, Share: keys.Share(), Generation: leasehold.Generation(r.GetLease().GetGeneration()),
		Owner: r.GetOwner(), Addr: r.GetAddr(), LostAt: leasehold.LSN(r.GetLost()),
		LostUnknown: r.GetLost() != 0 && r.GetLost() <= begun,
	}
}

// A Found is the range of a key.
type Found struct {
	Namespace string        `json:"namespace"`
	Key       Point         `json:"key"`
	LSN       leasehold.LSN `json:"lsn,string"`
	Range
}

// Find returns the range of a key, with its owner.
func (c *Client) Find(ctx context.Context, namespace string, key leasehold.Key) (Found, error) {
	found := Found{Namespace: namespace, Key: Point(key)}
	err := c.Do(ctx, func(ctx context.Context, s service) error {
		answer, err := s.LookupKey(ctx, &leaseholdv1.LookupKeyRequest{Version: wire.Version, Namespace: namespace, Key: uint64(key)})
		if err != nil {
			return err
		}
		found.LSN, found.Range = leasehold.LSN(answer.GetLsn()), rangeOf(answer.GetRange(), answer.GetBegun())
		return nil
	})
	return found, err
}

// missing returns the share of the key space that is in keys and in none of the ranges, and
// whether there is any.
func (all Ranges) missing(keys leasehold.Range) (share float64, some bool) {
	share, some = shareOf(keys), true
	next := keys.Start // all keys before it are in a range
	for _, r := range all.Ranges {
		part, overlaps := r.Keys().Intersect(keys)
		if !overlaps {
			continue
		}
		share -= shareOf(part)
		if some && part.Start == next {
			next = part.Limit
			some = part.Last() != keys.Last()
		}
	}
	return max(0, share), some
}

// lostSince compares these ranges of an owner with a later table. It returns the share of the key
// space whose state was lost in between, and whether the owner still holds one of the leases. If another
// process has its name, only a lease of the same generation counts. Where ranges were merged, the
// share is an upper bound.
func (all Ranges) lostSince(now Ranges, owner string, another bool) (lost float64, holds bool) {
	j := 0
	for _, had := range all.Ranges {
		for j < len(now.Ranges) && now.Ranges[j].Keys().Last() < leasehold.Key(had.Start) {
			j++
		}
		for _, r := range now.Ranges[j:] {
			part, overlaps := r.Keys().Intersect(had.Keys())
			if !overlaps {
				break
			}
			holds = holds || r.Owner == owner && (!another || r.Generation == had.Generation)
			if r.LostAt > all.LSN {
				lost += shareOf(part)
			}
		}
	}
	return lost, holds
}
