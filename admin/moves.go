package admin

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Moves are the moves of state in a namespace, in progress first, the oldest before the others.
type Moves struct {
	Namespace string `json:"namespace"`
	UnderWay  uint32 `json:"underWay"`
	Waiting   uint32 `json:"waiting"`
	Moves     []Move `json:"moves"` // at most 4096
}

// The states of a Move.
const (
	MoveWaiting = "waiting" // its source or its target has enough to do
	MoveBegun   = "begun"   // the source has not reported it yet
	MoveCopying = "copying" // the source serves the range, and copies
	MoveStopped = "stopped" // the source has stopped serving the range, and sends the rest
)

// A Move is a range whose state is sent from one owner to another. From an owner to itself, it merges
// adjacent leases.
type Move struct {
	ID string `json:"id,omitempty"` // "" while it waits
	Interval
	Share    float64 `json:"share"`
	From     string  `json:"from"`
	To       string  `json:"to"`
	State    string  `json:"state"` // MoveWaiting, ...
	Records  uint64  `json:"records"`
	Bytes    uint64  `json:"bytes"`
	Age      Seconds `json:"ageSeconds"`
	Patience Seconds `json:"patienceSeconds"`  // until it fails, without progress
	Reason   string  `json:"reason,omitempty"` // as in Change
}

// Moves returns the moves of a namespace.
func (c *Client) Moves(ctx context.Context, namespace string) (Moves, error) {
	return read(ctx, c, func(ctx context.Context, s leaseholdv1.AdminServiceClient) (Moves, error) {
		return moves(ctx, s, namespace)
	})
}

func moves(ctx context.Context, s leaseholdv1.AdminServiceClient, namespace string) (Moves, error) {
	answer, err := s.ListMoves(ctx, &leaseholdv1.ListMovesRequest{Version: wire.Version, Namespace: namespace})
	return movesOf(namespace, answer), err
}

func movesOf(namespace string, answer *leaseholdv1.ListMovesResponse) Moves {
	all := Moves{Namespace: namespace, UnderWay: answer.GetUnderWay(), Waiting: answer.GetWaiting(), Moves: []Move{}}
	for _, m := range answer.GetMoves() {
		all.Moves = append(all.Moves, moveOf(m))
	}
	return all
}

func moveOf(m *leaseholdv1.MoveStatus) Move {
	keys := intervalOf(m.GetStart(), m.GetLimit())
	out := Move{
		ID: m.GetId(), Interval: keys, Share: keys.Share(), From: m.GetFrom(), To: m.GetTo(),
		State: optionalName(m.GetState(), "MOVE_STATE_"), Records: m.GetRecords(), Bytes: m.GetBytes(),
		Age: Seconds(m.GetAge()), Patience: Seconds(m.GetPatience()), Reason: optionalName(m.GetReason(), "REASON_"),
	}
	switch {
	case out.ID == "":
		out.State = MoveWaiting
	case out.State == "":
		out.State = MoveBegun
	}
	return out
}

// A sentTally adds up the bytes that moves have sent, as far as they were seen.
type sentTally map[string]uint64 // by id

// add takes in the moves for which wanted is true. It returns their number and all bytes so far.
func (t sentTally) add(all Moves, wanted func(Move) bool) (count int, sent uint64) {
	for _, m := range all.Moves {
		if !wanted(m) {
			continue
		}
		count++
		if m.ID != "" {
			t[m.ID] = max(t[m.ID], m.Bytes)
		}
	}
	for _, bytes := range t {
		sent += bytes
	}
	return count, sent
}
