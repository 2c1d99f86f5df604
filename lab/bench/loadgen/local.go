package loadgen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/store/mem"
)

const (
	// localLeases is the number of the owner's leases: every second of twice as many ranges.
	localLeases = 64
	// Asked is the number of keys and names: too many for a branch predictor.
	Asked = 1 << 14

	localNamespace = "bench"
	localManager   = "manager:1"
)

// A Local is a manager and an owner in this process. The owner holds half of all keys, in 64
// leases.
type Local struct {
	Owner *owner.Owner

	manager *manager.Manager
	lookup  *lookup.Lookup
	dial    []grpc.DialOption
}

// StartLocal waits until the owner has its leases.
func StartLocal(ctx context.Context) (*Local, error) {
	listener := bufconn.Listen(1 << 20)
	l := &Local{dial: []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	}}
	var err error
	l.manager, err = manager.Start(manager.Config{
		Store: mem.New(), Listener: listener, Advertise: localManager, DialOptions: l.dial, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := l.join(ctx); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Local) join(ctx context.Context) error {
	conn, err := grpc.NewClient("passthrough:///"+localManager, append(wire.DialOptions(), l.dial...)...)
	if err != nil {
		return err
	}
	config := proc.EverySecond(localNamespace, "o", localLeases)
	if err := errors.Join(proc.CreateNamespace(ctx, conn, config), conn.Close()); err != nil {
		return err
	}
	granted := make(chan struct{}, 1)
	l.Owner, err = owner.Join(ctx, owner.Config{
		Namespace: localNamespace, Managers: []string{localManager}, Name: "o", Addr: "o:1",
		Credentials: insecure.NewCredentials(), DialOptions: l.dial,
		OnGrant: func([]leasehold.Lease) { granted <- struct{}{} },
	})
	if err != nil {
		return err
	}
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the lookup, the owner and the manager.
func (l *Local) Close() {
	if l.lookup != nil {
		_ = l.lookup.Close(context.Background())
	}
	if l.Owner != nil {
		_ = l.Owner.Close(context.Background())
	}
	_ = l.manager.Close(context.Background())
}

// Lookup opens a lookup, which Close closes.
func (l *Local) Lookup(ctx context.Context) (_ *lookup.Lookup, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	l.lookup, err = lookup.Open(ctx, lookup.Config{
		Namespace: localNamespace, Managers: []string{localManager}, Credentials: insecure.NewCredentials(), DialOptions: l.dial,
	})
	return l.lookup, err
}

// Keys returns keys of the owner, unsorted.
func (l *Local) Keys() []leasehold.Key {
	random := rand.New(rand.NewPCG(3, 4))
	leases := l.Owner.Leases()
	keys := make([]leasehold.Key, Asked)
	for i := range keys {
		r := leases[random.IntN(len(leases))].Range
		keys[i] = r.Start + leasehold.Key(random.Uint64N(uint64(r.Last()-r.Start)))
	}
	return keys
}

// Names returns names of 20 bytes whose keys the owner holds, unsorted.
func (l *Local) Names() []string {
	var owned []string
	for _, name := range Names(Asked) {
		if _, ok := l.Owner.Check(leasehold.KeyOf(name)); ok {
			owned = append(owned, name)
		}
	}
	return owned
}

// Names returns names of 20 bytes, unsorted.
func Names(n int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("session-%012d", random.Uint64N(1_000_000_000_000))
	}
	return names
}
