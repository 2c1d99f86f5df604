package demo

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/managers"
	"github.com/leasehold-dev/leasehold/internal/plaintext"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An admin asks the managers. It may be used from many goroutines at once.
type admin struct {
	*managers.Group
}

// askPatience is for one question to one manager.
const askPatience = time.Second

func newAdmin(addrs []string, secured credentials.TransportCredentials) (*admin, error) {
	if secured == nil {
		secured = plaintext.Credentials()
	}
	g, err := managers.Dial(addrs, secured, askPatience)
	if err != nil {
		return nil, err
	}
	return &admin{g}, nil
}

// A leadership is who leads, in which term.
type leadership struct {
	leader string // its address; never empty
	term   leasehold.Term
}

// leader returns who leads in a term after the given one, as one manager says
// that is not the leader's predecessor.
func (a *admin) leader(ctx context.Context, after leasehold.Term) (leadership, error) {
	var found leadership
	err := a.Ask(ctx, func(ctx context.Context, to leaseholdv1.AdminServiceClient) error {
		s, err := to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		if err != nil {
			return err
		}
		if s.GetLeader() == "" || leasehold.Term(s.GetTerm()) <= after {
			return leasehold.Errorf("ask", leasehold.NotLeader, s.GetManager(), "it knows of no leader after term %d", after)
		}
		found = leadership{s.GetLeader(), leasehold.Term(s.GetTerm())}
		return nil
	})
	return found, err
}

// owners returns what the leader makes of each session.
func (a *admin) owners(ctx context.Context) ([]*leaseholdv1.OwnerStatus, error) {
	var found []*leaseholdv1.OwnerStatus
	err := a.Ask(ctx, func(ctx context.Context, to leaseholdv1.AdminServiceClient) error {
		answer, err := to.ListOwners(ctx, &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: string(namespace)})
		found = answer.GetOwners()
		return err
	})
	return found, err
}

// ranges returns the lease table.
func (a *admin) ranges(ctx context.Context) ([]*leaseholdv1.HeldRange, error) {
	var found []*leaseholdv1.HeldRange
	err := a.Ask(ctx, func(ctx context.Context, to leaseholdv1.AdminServiceClient) error {
		found = nil
		stream, err := to.ListRanges(ctx, &leaseholdv1.ListRangesRequest{Version: wire.Version, Namespace: string(namespace)})
		if err != nil {
			return err
		}
		for {
			piece, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			found = append(found, piece.GetRanges()...)
		}
	})
	return found, err
}

// moves returns how many moves of state are under way, or wait for their turn.
func (a *admin) moves(ctx context.Context) (int, error) {
	var found uint32
	err := a.Ask(ctx, func(ctx context.Context, to leaseholdv1.AdminServiceClient) error {
		answer, err := to.ListMoves(ctx, &leaseholdv1.ListMovesRequest{Version: wire.Version, Namespace: string(namespace)})
		found = answer.GetUnderWay() + answer.GetWaiting()
		return err
	})
	return int(found), err
}

// history returns what became of a key, newest first.
func (a *admin) history(ctx context.Context, key leasehold.Key) ([]*leaseholdv1.HistoryEntry, error) {
	var found []*leaseholdv1.HistoryEntry
	err := a.Ask(ctx, func(ctx context.Context, to leaseholdv1.AdminServiceClient) error {
		answer, err := to.ListHistory(ctx, &leaseholdv1.ListHistoryRequest{Version: wire.Version, Namespace: string(namespace), Key: uint64(key)})
		found = answer.GetEntries()
		return err
	})
	return found, err
}

// create makes the namespace. Repeating it does no harm.
func (a *admin) create(ctx context.Context, cfg *Config) error {
	err := a.Ask(ctx, func(ctx context.Context, to leaseholdv1.AdminServiceClient) error {
		_, err := to.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{
			Version: wire.Version,
			Namespace: &leaseholdv1.NamespaceConfig{
				Name:   string(namespace),
				Timing: &leaseholdv1.Timing{Lease: int64(cfg.Lease), Renew: int64(cfg.renew())},
				// All servers share the processors of this computer. Several moves at a
				// time would not be over sooner, but each would wait for the others in
				// the moments that count, when nobody serves its keys.
				Moves: 1,
			},
		})
		return err
	})
	if errors.Is(err, leasehold.Exists) {
		return nil
	}
	return err
}

// poll is how often to ask about something that is waited for.
const poll = 20 * time.Millisecond

// await asks until the answer is yes. It returns the last error, or that of the
// context, if that ends first.
func await(ctx context.Context, what string, patience time.Duration, yes func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		ok, err := yes(ctx)
		if ok {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return leasehold.Errorf("demo", leasehold.Unavailable, "", "%s: not within %v: %w", what, patience, errors.Join(err, ctx.Err()))
		}
	}
}
