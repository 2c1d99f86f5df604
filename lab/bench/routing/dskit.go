//go:build !nodskit

package main

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-kit/log"
	"github.com/grafana/dskit/kv"
	"github.com/grafana/dskit/ring"
	"github.com/grafana/dskit/services"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
)

// startRing starts a ring client as the distributors of Mimir, Loki and Tempo
// have it, and asks it as they do for each series or stream: Ring.Get with
// buffers that are used again. It is the only call that gives the server of a
// key: the search for a token is not exported, and a token is not an address.
//
// The ring does more than we ask of it: it picks replicas and leaves out servers
// that are not healthy. It is spared what can be: one replica, no zones. Its keys
// have 32 bits, so it gets the upper half of the same hash.
func startRing(ctx context.Context, servers int) (*router, error) {
	store := &changingStore{with: describe(servers), changes: make(chan *ring.Desc)}
	store.without = ring.NewDesc()
	maps.Copy(store.without.Ingesters, store.with.Ingesters)
	store.without.RemoveIngester(goes())
	cfg := ring.Config{ReplicationFactor: 1, HeartbeatTimeout: 24 * time.Hour} // there are no heartbeats
	r, err := ring.NewWithStoreClientAndStrategy(cfg, "bench", "ring", store,
		ring.NewDefaultReplicationStrategy(), prometheus.NewRegistry(), log.NewNopLogger())
	if err != nil {
		return nil, err
	}
	if err := services.StartAndAwaitRunning(ctx, r); err != nil {
		return nil, err
	}
	names := names()
	return &router{
		name: nameRing, pieces: servers * perServer, change: leaveAndJoin(func() { store.changes <- store.without }, func() { store.changes <- store.with }), // it returns when the ring has taken it
		find: func(first, n int) (sum int) {
			instances, hosts, zones := ring.MakeBuffersForGet()
			for i := range n {
				key := uint32(leasehold.KeyOf(names[(first+i)%asked]) >> 32)
				set, err := r.Get(key, ring.WriteNoExtend, instances[:0], hosts[:0], zones[:0])
				if err != nil {
					panic(err) // a ring that has servers finds one
				}
				sum += len(set.Instances[0].Addr)
			}
			return sum
		},
		close: func() { _ = services.StopAndAwaitTerminated(context.Background(), r) },
	}, nil
}

func describe(servers int) *ring.Desc {
	desc := ring.NewDesc()
	random := rand.New(rand.NewPCG(3, 4))
	for _, name := range addresses(servers) {
		tokens := make(ring.Tokens, perServer)
		for i := range tokens {
			tokens[i] = random.Uint32()
		}
		slices.Sort(tokens)
		desc.AddIngester(name, name, "", tokens, ring.ACTIVE, time.Now(), false, time.Time{}, nil)
	}
	return desc
}

// A changingStore holds a ring that has a server more or less.
type changingStore struct {
	kv.Client     // what a reader of rings does not call
	with, without *ring.Desc
	changes       chan *ring.Desc
}

func (s *changingStore) Get(context.Context, string) (any, error) { return s.with, nil }

func (s *changingStore) WatchKey(ctx context.Context, _ string, tell func(any) bool) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-s.changes:
			if !tell(next) {
				return
			}
		}
	}
}
