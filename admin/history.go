package admin

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// The kinds of a Change.
const (
	ChangeGranted = "granted"
	ChangeMoved   = "moved"
	ChangeVacated = "vacated"
)

// A Change is one change of a lease table.
type Change struct {
	LSN  leasehold.LSN `json:"lsn,string"`
	At   time.Time     `json:"at,omitzero"` // on the clock of the leader that wrote it
	Kind string        `json:"kind"`        // ChangeGranted, ...
	Interval
	Generation leasehold.Generation `json:"generation,string"`
	Owner      string               `json:"owner"` // of ChangeVacated: the former owner
	Session    string               `json:"session"`
	Addr       string               `json:"addr"`
	Cause      string               `json:"cause,omitempty"` // of ChangeVacated: expired, released, left, refused, restarted or died
	From       string               `json:"from,omitempty"`  // of ChangeMoved: the former owner
	// Reason is why the owner was given the range: joined, gone, load, leaving, drain, order, rebalance,
	// configured or joint; "" if it is not known.
	Reason string `json:"reason,omitempty"`
}

func changeOf(e *leaseholdv1.HistoryEntry) Change {
	h := e.GetHolder()
	c := Change{
		LSN: leasehold.LSN(e.GetLsn()), Kind: enumName(e.GetKind(), "CHANGE_KIND_"),
		Interval: leaseInterval(e.GetLease()), Generation: leasehold.Generation(e.GetLease().GetGeneration()),
		Owner: h.GetOwner(), Session: sessionOf(h), Addr: h.GetAddr(), From: e.GetFrom().GetOwner(),
		Cause: optionalName(e.GetCause(), "CAUSE_"), Reason: optionalName(e.GetReason(), "REASON_"),
	}
	if e.GetAt() != nil {
		c.At = e.GetAt().AsTime()
	}
	return c
}

// A History is how the range of a key changed, newest first.
type History struct {
	Namespace string   `json:"namespace"`
	Key       Point    `json:"key"`
	Truncated bool     `json:"truncated"`          // earlier changes are no longer stored
	More      bool     `json:"more"`               // there are earlier changes
	Diskless  bool     `json:"diskless,omitempty"` // changes before the current leader are not stored
	Entries   []Change `json:"entries"`
	Before    *Range   `json:"before,omitempty"` // without entries: the range, if its owner has not changed
}

// History returns up to most changes of the range of a key. With a time since, it returns the changes
// after it and the one that was in force then.
func (c *Client) History(ctx context.Context, namespace string, key leasehold.Key, most uint32, since time.Time) (History, error) {
	h := History{Namespace: namespace, Key: Point(key), Entries: []Change{}}
	err := c.Do(ctx, func(ctx context.Context, s service) error {
		answer, err := s.ListHistory(ctx, &leaseholdv1.ListHistoryRequest{
			Version: wire.Version, Namespace: namespace, Key: uint64(key), Most: most,
		})
		if err != nil {
			return err
		}
		h.Truncated, h.More, h.Diskless = answer.GetTruncated(), answer.GetMore(), answer.GetBegun() > 0
		h.Entries = convert(answer.GetEntries(), changeOf)
		if before := answer.GetBefore(); before != nil {
			h.Before = new(rangeOf(before, answer.GetBegun()))
		}
		return nil
	})
	h.cut(since)
	return h, err
}

// cut removes the changes before a time, except the one that was in force then.
func (h *History) cut(since time.Time) {
	for i, e := range h.Entries {
		if e.At.Before(since) {
			h.Entries, h.More, h.Truncated, h.Diskless = h.Entries[:i+1], false, false, false
			return
		}
	}
}
