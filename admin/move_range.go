package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A RangeMove moves a range to an owner.
type RangeMove struct {
	Namespace string `json:"namespace"`
	Owner     string `json:"owner"`
	Interval
	Outcome string  `json:"outcome"`
	Sent    uint64  `json:"sentBytes"`
	Elapsed Seconds `json:"seconds"`
	Plan    Plan    `json:"plan"` // empty if the owner had the range

	client   *Client
	sent     sentTally
	patience time.Duration // see abandonAfter
	seen     time.Time     // when a move was last in progress, or may have been
	moves    int           // in progress at the last poll
}

// abandonAfter is how long a move may be neither done nor in progress before it counts as failed: the
// leader commits a move before it is visible.
const abandonAfter = 3 * time.Second

// MoveRange moves a range with its state to an owner. It returns when the move has started. The range may
// be a part of a range of the table, or parts of several. The policy may move it again later.
func (c *Client) MoveRange(ctx context.Context, namespace string, keys leasehold.Range, owner string, options OrderOptions) (*RangeMove, error) {
	return c.moveRange(ctx, options, &leaseholdv1.MoveRangeRequest{
		Version: wire.Version, Namespace: namespace, Owner: owner, Start: uint64(keys.Start), Limit: uint64(keys.Limit),
	})
}

// MoveKey is MoveRange for the range of the table that contains a key.
func (c *Client) MoveKey(ctx context.Context, namespace string, key leasehold.Key, owner string, options OrderOptions) (*RangeMove, error) {
	return c.moveRange(ctx, options, &leaseholdv1.MoveRangeRequest{
		Version: wire.Version, Namespace: namespace, Owner: owner, Start: uint64(key), ByKey: true,
	})
}

func (c *Client) moveRange(ctx context.Context, options OrderOptions, request *leaseholdv1.MoveRangeRequest) (*RangeMove, error) {
	m := &RangeMove{Namespace: request.GetNamespace(), Owner: request.GetOwner(), Outcome: options.Outcome(), client: c, sent: sentTally{}, patience: abandonAfter}
	var way delivery
	err := c.Do(ctx, func(ctx context.Context, s service) error {
		all, _, err := known(ctx, s, m.Namespace, m.Owner)
		if err != nil {
			return err
		}
		m.Plan, err = order("this move", options,
			func() (Owners, error) { return all, nil },
			func(o OrderOptions) (*leaseholdv1.Plan, error) {
				request.DryRun, request.LoseState = o.DryRun, o.LoseState
				answer, err := s.MoveRange(ctx, request)
				way.sent(o.DryRun, err)
				m.Interval = intervalOf(answer.GetStart(), answer.GetLimit())
				return answer.GetPlan(), err
			})
		if m.Plan.ShareLost > 0 {
			m.patience += all.longestPatience() // ranges without state to move are recalled first
		}
		return err
	})
	if !options.DryRun && m.Plan.Total == 0 {
		m.Outcome = OutcomeMoved
	}
	return m, way.result(err)
}

// ErrNotMoved is the error of a move that failed, or that the policy overruled.
var ErrNotMoved = errors.New("the move failed, or the policy overruled it")

// Wait waits until the owner has the range, and updates m. When the context ends, the move continues.
func (m *RangeMove) Wait(ctx context.Context, report func(Progress, error)) error {
	begun := time.Now()
	m.seen = begun
	err := m.client.wait(ctx, report, func(ctx context.Context, s service) (Progress, bool, error) {
		p, done, err := m.poll(ctx, s)
		if err != nil && Retriable(wire.ToError(err)) {
			m.seen = time.Now() // a new leader takes a while
		}
		return p, done, err
	})
	m.Elapsed = Seconds(time.Since(begun).Round(time.Millisecond))
	m.Outcome = OutcomeMoved
	if err != nil {
		m.Outcome = OutcomeUnfinished
	}
	return err
}

// InProgress reports whether a part of the range was being moved at the last poll of Wait.
func (m *RangeMove) InProgress() bool { return m.moves > 0 }

func (m *RangeMove) poll(ctx context.Context, s service) (Progress, bool, error) {
	has, err := ranges(ctx, s, m.Namespace, m.Owner)
	if err != nil {
		return Progress{}, false, err
	}
	inProgress, err := moves(ctx, s, m.Namespace)
	if err != nil {
		return Progress{}, false, err
	}
	return m.assess(has, inProgress)
}

// assess returns the progress of the move, from the ranges of its owner and the moves in progress.
func (m *RangeMove) assess(has Ranges, inProgress Moves) (p Progress, done bool, err error) {
	left, some := has.missing(m.Keys())
	if !some {
		return p, true, nil
	}
	m.moves, m.Sent = m.sent.add(inProgress, func(move Move) bool {
		return move.To == m.Owner && move.From != m.Owner && move.Keys().Overlaps(m.Keys())
	})
	all := len(inProgress.Moves) >= int(inProgress.UnderWay+inProgress.Waiting)
	switch {
	case m.moves > 0 || !all: // it may be one of those that are not listed
		m.seen = time.Now()
	case time.Since(m.seen) > m.patience:
		return p, false, fmt.Errorf("%.2f %% of the keys were not moved: %w", 100*left, ErrNotMoved)
	}
	return Progress{Share: 1 - left/max(m.Plan.Share, left, 1e-18), Moves: m.moves, Left: left}, false, nil
}
