package demo

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// An admin sends requests to the managers. It may be used by many goroutines at once.
type admin struct {
	*proc.Client
}

// adminTimeout bounds one request to one manager.
const adminTimeout = time.Second

func newAdmin(addrs []string, secured credentials.TransportCredentials) (*admin, error) {
	if secured == nil {
		secured = managerconn.Plaintext()
	}
	g, err := proc.Dial(addrs, secured, adminTimeout)
	if err != nil {
		return nil, err
	}
	return &admin{g}, nil
}

// A leadership is a leader and its term.
type leadership struct {
	leader string // its address; never empty
	term   leasehold.Term
}

// leader returns the leader of a term after the given one, as any manager reports it.
func (a *admin) leader(ctx context.Context, after leasehold.Term) (leadership, error) {
	return ask(ctx, a, func(ctx context.Context, to leaseholdv1.AdminServiceClient) (leadership, error) {
		s, err := to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		found := leadership{s.GetLeader(), leasehold.Term(s.GetTerm())}
		if err == nil && (found.leader == "" || found.term <= after) {
			err = leasehold.Errorf("status", leasehold.ErrNotLeader, s.GetManager(), "it knows no leader after term %d", after)
		}
		return found, err
	})
}

// ask calls the managers, one after the other until one answers.
func ask[T any](ctx context.Context, a *admin, call func(context.Context, leaseholdv1.AdminServiceClient) (T, error)) (answer T, err error) {
	err = a.Ask(ctx, func(ctx context.Context, to leaseholdv1.AdminServiceClient) error {
		var err error
		answer, err = call(ctx, to)
		return err
	})
	return answer, err
}

// owners returns the status of every session.
func (a *admin) owners(ctx context.Context) ([]*leaseholdv1.OwnerStatus, error) {
	answer, err := ask(ctx, a, func(ctx context.Context, to leaseholdv1.AdminServiceClient) (*leaseholdv1.ListOwnersResponse, error) {
		return to.ListOwners(ctx, &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: string(namespace)})
	})
	return answer.GetOwners(), err
}

// ranges returns the lease table.
func (a *admin) ranges(ctx context.Context) ([]*leaseholdv1.HeldRange, error) {
	return ask(ctx, a, func(ctx context.Context, to leaseholdv1.AdminServiceClient) (all []*leaseholdv1.HeldRange, err error) {
		stream, err := to.ListRanges(ctx, &leaseholdv1.ListRangesRequest{Version: wire.Version, Namespace: string(namespace)})
		for err == nil {
			var part *leaseholdv1.ListRangesResponse
			part, err = stream.Recv()
			all = append(all, part.GetRanges()...)
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		return nil, err
	})
}

// moves returns how many moves of state are under way or wait for their turn.
func (a *admin) moves(ctx context.Context) (int, error) {
	answer, err := ask(ctx, a, func(ctx context.Context, to leaseholdv1.AdminServiceClient) (*leaseholdv1.ListMovesResponse, error) {
		return to.ListMoves(ctx, &leaseholdv1.ListMovesRequest{Version: wire.Version, Namespace: string(namespace)})
	})
	return int(answer.GetUnderWay() + answer.GetWaiting()), err
}

// followMoves calls moved for each range that moves to another owner with its state. It
// watches one manager after the other until the context ends; moves in between are missed.
func (a *admin) followMoves(ctx context.Context, moved func(leasehold.Range)) {
	for i := 0; ctx.Err() == nil; i = (i + 1) % a.Len() {
		stream, err := a.At(i).Watch(ctx, &leaseholdv1.WatchRequest{Version: wire.Version, Namespace: string(namespace)})
		for err == nil {
			var event *leaseholdv1.WatchResponse
			event, err = stream.Recv()
			c := event.GetChange()
			if c.GetKind() == leaseholdv1.ChangeKind_CHANGE_KIND_MOVED && c.GetFrom().GetOwner() != c.GetHolder().GetOwner() {
				moved(leasehold.Range{Start: leasehold.Key(c.GetLease().GetStart()), Limit: leasehold.Key(c.GetLease().GetLimit())})
			}
		}
		pause(ctx, poll)
	}
}

// create creates the namespace, if it does not exist.
func (a *admin) create(ctx context.Context, cfg *Config) error {
	err := a.Ask(ctx, func(ctx context.Context, to leaseholdv1.AdminServiceClient) error {
		_, err := to.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{
			Version: wire.Version,
			Namespace: &leaseholdv1.NamespaceConfig{
				Name:   string(namespace),
				Timing: &leaseholdv1.Timing{Lease: int64(cfg.Lease), Renew: int64(cfg.renew())},
				// All servers share the processors of this computer. Several moves at a time
				// would not end sooner, but each would wait for the others while its keys have
				// no owner.
				Moves: 1,
			},
		})
		return err
	})
	if errors.Is(err, leasehold.ErrExists) {
		return nil
	}
	return err
}

// poll is the interval at which a condition is checked that is waited for.
const poll = 20 * time.Millisecond

// await waits until a condition holds. After the timeout it returns the condition's last
// error.
func await(ctx context.Context, what string, timeout time.Duration, holds func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		ok, err := holds(ctx)
		if ok {
			return nil
		}
		if !pause(ctx, poll) {
			return leasehold.Errorf("demo", leasehold.ErrUnavailable, "", "%s: not within %v: %w", what, timeout, errors.Join(err, ctx.Err()))
		}
	}
}

// pause waits, and reports whether the context has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
