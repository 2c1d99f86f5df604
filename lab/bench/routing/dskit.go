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

// startRing starts a ring client as the distributors of Mimir, Loki and Tempo do, and
// calls it as they do for each series or stream: Ring.Get with reused buffers. That is
// the only call that returns the server of a key: the search for a token is not
// exported, and a token is not an address.
//
// The ring does more than this benchmark needs: it picks replicas and skips unhealthy
// servers. It has the cheapest configuration: one replica, no zones. Its keys have 32
// bits, so it gets the upper half of the same hash.
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
		name: nameRing, pieces: servers * perServer, change: leaveAndJoin(func() { store.changes <- store.without }, func() { store.changes <- store.with }), // returns when the ring has received the change
		find: func(first, n int) (sum int) {
			instances, hosts, zones := ring.MakeBuffersForGet()
			for i := range n {
				key := uint32(leasehold.KeyOf(names[(first+i)%nameCount]) >> 32)
				set, err := r.Get(key, ring.WriteNoExtend, instances[:0], hosts[:0], zones[:0])
				if err != nil {
					panic(err) // a ring with servers always finds one
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

// A changingStore holds two versions of a ring, with and without one server.
type changingStore struct {
	kv.Client     // nil; readers of rings do not call its other methods
	with, without *ring.Desc
	changes       chan *ring.Desc
}

func (s *changingStore) Get(context.Context, string) (any, error) { return s.with, nil }

func (s *changingStore) WatchKey(ctx context.Context, _ string, receive func(any) bool) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-s.changes:
			if !receive(next) {
				return
			}
		}
	}
}
