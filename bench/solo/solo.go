// Package solo has one owner, of a manager in the same process, and what its
// server does for each request: what several questions, and the guard, measure.
package solo

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store/mem"
)

const (
	// Leases is how many the owner has: every second of twice as many ranges.
	Leases = 64
	// Asked is how many keys and names there are to ask for: more than a branch
	// predictor learns.
	Asked = 1 << 14

	namespace = "bench"
)

// A Solo is an owner that has half of all keys, in 64 leases, and its manager.
type Solo struct {
	Owner *owner.Owner

	manager *manager.Manager
	dial    []grpc.DialOption
}

// Start returns when the owner has its leases.
func Start(ctx context.Context) (*Solo, error) {
	listener := bufconn.Listen(1 << 20)
	s := &Solo{dial: []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	}}
	var err error
	s.manager, err = manager.Start(manager.Config{
		Store: mem.New(), Listener: listener, Advertise: "manager:1", DialOptions: s.dial, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if s.Owner, err = join(ctx, s.dial); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the owner and the manager.
func (s *Solo) Close() {
	if s.Owner != nil {
		_ = s.Owner.Close(context.Background())
	}
	_ = s.manager.Close(context.Background())
}

// Lookup follows the manager's table. The caller closes it, before the rest.
func (s *Solo) Lookup(ctx context.Context) (*lookup.Lookup, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return lookup.Open(ctx, lookup.Config{
		Namespace: namespace, Managers: []string{"manager:1"}, Credentials: insecure.NewCredentials(), DialOptions: s.dial,
	})
}

// join makes an owner that has every second range.
func join(ctx context.Context, dial []grpc.DialOption) (*owner.Owner, error) {
	if err := createNamespace(ctx, dial); err != nil {
		return nil, err
	}
	granted := make(chan struct{}, 1)
	o, err := owner.Join(ctx, owner.Config{
		Namespace: namespace, Managers: []string{"manager:1"}, Name: "o", Addr: "o:1", Credentials: insecure.NewCredentials(), DialOptions: dial,
		OnGrant: func([]leasehold.Lease) { granted <- struct{}{} },
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-granted:
		return o, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func createNamespace(ctx context.Context, dial []grpc.DialOption) error {
	conn, err := grpc.NewClient("passthrough:///manager:1", append(wire.DialOptions(), dial...)...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	config := &leaseholdv1.NamespaceConfig{Name: namespace, Policy: "static"}
	for i := range uint64(2 * Leases) {
		slot := &leaseholdv1.StaticSlot{Start: i << 57}
		if i%2 == 0 {
			slot.Owner = "o"
		}
		config.Static = append(config.Static, slot)
	}
	request := &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config}
	for { // until it leads
		_, err := leaseholdv1.NewAdminServiceClient(conn).CreateNamespace(ctx, request)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// Keys returns keys that the owner holds, in no order.
func Keys(o *owner.Owner) []leasehold.Key {
	random := rand.New(rand.NewPCG(3, 4))
	leases := o.Leases()
	keys := make([]leasehold.Key, Asked)
	for i := range keys {
		r := leases[random.IntN(len(leases))].Range
		keys[i] = r.Start + leasehold.Key(random.Uint64N(uint64(r.Last()-r.Start)))
	}
	return keys
}

// Names returns names of 20 bytes that the owner holds, in no order.
func Names(o *owner.Owner) []string {
	random := rand.New(rand.NewPCG(1, 2))
	var owned []string
	for range Asked {
		name := fmt.Sprintf("session-%012d", random.Uint64N(1_000_000_000_000))
		if _, ok := o.Check(leasehold.KeyOf(name)); ok {
			owned = append(owned, name)
		}
	}
	return owned
}
