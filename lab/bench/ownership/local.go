package ownership

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/owner"
)

const (
	// ownerLeases is the number of the owner's leases: every second of twice as many ranges.
	ownerLeases = 64
	namespace   = "bench"
)

// joinOwner starts a manager, and joins an owner in this process, which holds half of all keys in
// 64 leases. It returns when the owner has its leases.
func joinOwner(ctx context.Context, dir string, ends *proc.Cleanup) (*owner.Owner, error) {
	ctx, cancel := context.WithTimeout(ctx, proc.StartLimit)
	defer cancel()
	group, err := managers.Start(ctx, dir, 1)
	if err != nil {
		return nil, err
	}
	ends.Add(group.Close)
	if err := group.CreateNamespace(ctx, managers.EverySecond(namespace, "o", ownerLeases)); err != nil {
		return nil, err
	}
	granted := make(chan struct{}, 1)
	o, err := owner.Join(ctx, owner.Config{
		Namespace: namespace, Managers: group.Addrs(), Name: "o", Addr: "o:1",
		OnGrant: func([]leasehold.Lease) { granted <- struct{}{} },
	})
	if err != nil {
		return nil, err
	}
	ends.Add(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = o.Close(ctx) // its manager ends next
	})
	select {
	case <-granted:
		return o, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// keysOf returns keys of an owner, unsorted.
func keysOf(o *owner.Owner) []leasehold.Key {
	random := rand.New(rand.NewPCG(3, 4))
	leases := o.Leases()
	keys := make([]leasehold.Key, loadgen.Asked)
	for i := range keys {
		r := leases[random.IntN(len(leases))].Range
		keys[i] = r.Start + leasehold.Key(random.Uint64N(uint64(r.Last()-r.Start)))
	}
	return keys
}

// namesOf returns names of 20 bytes whose keys an owner holds, unsorted.
func namesOf(o *owner.Owner) []string {
	var owned []string
	for _, name := range loadgen.Names(loadgen.Asked) {
		if _, ok := o.Check(leasehold.KeyOf(name)); ok {
			owned = append(owned, name)
		}
	}
	return owned
}
