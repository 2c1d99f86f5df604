package bench

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// What an owner asks itself for every request, and what it is compared with.
const (
	Since = "time.Since"
	Check = "leasehold owner.Check"
	Held  = "leasehold owner.Held"
)

// startOwner returns an owner of 64 leases, and what ends it.
func startOwner() (*owner.Owner, func(), error) {
	listener := bufconn.Listen(1 << 20)
	dial := []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	}
	m, err := manager.Start(manager.Config{
		Store: mem.New(), Listener: listener, Advertise: "manager:1", DialOptions: dial, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, nil, err
	}
	stop := func() { _ = m.Close(context.Background()) }
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	o, err := joinAlone(ctx, dial)
	if err != nil {
		stop()
		return nil, nil, err
	}
	return o, func() { _ = o.Close(context.Background()); stop() }, nil
}

// OwnerContestants returns a reading of the clock, and the two questions that an
// owner of 64 leases asks itself.
func OwnerContestants() ([]Contestant, error) {
	o, stop, err := startOwner()
	if err != nil {
		return nil, err
	}
	keys := heldKeys(o)
	held := make([]owner.Lease, len(keys))
	for i, k := range keys {
		held[i], _ = o.Check(k)
	}
	origin := time.Now()
	return []Contestant{
		{Since, func(n int) int {
			sum := 0
			for range n {
				sum += int(time.Since(origin))
			}
			return sum
		}, nothing},
		{Check, func(n int) int {
			sum := 0
			for i := range n {
				if l, ok := o.Check(keys[i%asked]); ok {
					sum += int(l.Generation)
				}
			}
			return sum
		}, nothing},
		{Held, func(n int) int {
			sum := 0
			for i := range n {
				if o.Held(held[i%asked]) {
					sum++
				}
			}
			return sum
		}, stop},
	}, nil
}

// joinAlone makes an owner that has every second of 128 ranges.
func joinAlone(ctx context.Context, dial []grpc.DialOption) (*owner.Owner, error) {
	conn, err := grpc.NewClient("passthrough:///manager:1", append(wire.DialOptions(), dial...)...)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	config := &leaseholdv1.NamespaceConfig{Name: namespace, Policy: "static"}
	for i := range uint64(2 * perServer) {
		slot := &leaseholdv1.StaticSlot{Start: i << 57}
		if i%2 == 0 {
			slot.Owner = "o"
		}
		config.Static = append(config.Static, slot)
	}
	for { // until it leads
		_, err = leaseholdv1.NewAdminServiceClient(conn).CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config})
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
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

// heldKeys returns keys that the owner holds, in no order.
func heldKeys(o *owner.Owner) []leasehold.Key {
	random := rand.New(rand.NewPCG(3, 4))
	leases := o.Leases()
	keys := make([]leasehold.Key, asked)
	for i := range keys {
		r := leases[random.IntN(len(leases))].Range
		keys[i] = r.Start + leasehold.Key(random.Uint64N(uint64(r.Last()-r.Start)))
	}
	return keys
}
