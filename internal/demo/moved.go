package demo

import (
	"context"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A movedCount counts ranges that went from one owner to another with their
// state, as a manager says. It may be used from many goroutines at once.
type movedCount struct {
	mu     sync.Mutex
	ranges uint64
	share  float64 // of all keys; more than 1 if they moved more than once
}

func (m *movedCount) so() (ranges uint64, share float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ranges, m.share
}

// follow listens to one manager after the other until the context ends. What
// happens while it changes to another is missed.
func (m *movedCount) follow(ctx context.Context, a *admin) {
	for i := 0; ctx.Err() == nil; i = (i + 1) % a.Len() {
		_ = m.listen(ctx, a.At(i)) // it is dead or knows no leader: the next one is asked
		pause(ctx, poll)
	}
}

func (m *movedCount) listen(ctx context.Context, to leaseholdv1.AdminServiceClient) error {
	stream, err := to.Watch(ctx, &leaseholdv1.WatchRequest{Version: wire.Version, Namespace: string(namespace)})
	if err != nil {
		return err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		if c := event.GetChange(); c.GetKind() == leaseholdv1.ChangeKind_CHANGE_KIND_MOVED && c.GetFrom().GetOwner() != c.GetHolder().GetOwner() {
			m.add(leasehold.Range{Start: leasehold.Key(c.GetLease().GetStart()), Limit: leasehold.Key(c.GetLease().GetLimit())})
		}
	}
}

func (m *movedCount) add(r leasehold.Range) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ranges++
	m.share += (float64(r.Last()-r.Start) + 1) / (1 << 64)
}
