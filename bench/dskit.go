package bench

import (
	"context"
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

// Ring is dskit's contestant.
const Ring = "dskit ring.Get"

// startRing starts a ring client as the distributors of Mimir, Loki and Tempo
// have it, and asks it as they do for each series or stream: Ring.Get with
// buffers that are used again. It is the only call that gives the server of a
// key: the search for a token is not exported, and a token is not an address.
//
// The ring does more than we ask of it: it picks replicas and leaves out servers
// that are not healthy. It is spared what can be: one replica, no zones. Its keys
// have 32 bits, so it gets the upper half of the same hash.
func startRing() (Contestant, error) {
	desc := ring.NewDesc()
	random := rand.New(rand.NewPCG(3, 4))
	for server := range Servers {
		tokens := make(ring.Tokens, perServer)
		for i := range tokens {
			tokens[i] = random.Uint32()
		}
		slices.Sort(tokens)
		name := address(server)
		desc.AddIngester(name, name, "", tokens, ring.ACTIVE, time.Now(), false, time.Time{}, nil)
	}
	cfg := ring.Config{ReplicationFactor: 1, HeartbeatTimeout: 24 * time.Hour} // nobody sends heartbeats
	r, err := ring.NewWithStoreClientAndStrategy(cfg, "bench", "ring", &fixedStore{desc: desc},
		ring.NewDefaultReplicationStrategy(), prometheus.NewRegistry(), log.NewNopLogger())
	if err != nil {
		return Contestant{}, err
	}
	if err := services.StartAndAwaitRunning(context.Background(), r); err != nil {
		return Contestant{}, err
	}
	names := names()
	instances, hosts, zones := ring.MakeBuffersForGet()
	return Contestant{
		Name: Ring,
		Run: func(n int) (sum int) {
			for i := range n {
				key := uint32(leasehold.KeyOf(names[i%asked]) >> 32)
				set, err := r.Get(key, ring.WriteNoExtend, instances[:0], hosts[:0], zones[:0])
				if err != nil {
					panic(err) // a ring that never changes cannot run empty
				}
				sum += len(set.Instances[0].Addr)
			}
			return sum
		},
		Close: func() { _ = services.StopAndAwaitTerminated(context.Background(), r) },
	}, nil
}

// A fixedStore holds a ring that never changes.
type fixedStore struct {
	kv.Client // what a reader of rings does not call
	desc      *ring.Desc
}

func (s *fixedStore) Get(context.Context, string) (any, error) { return s.desc, nil }

func (s *fixedStore) WatchKey(ctx context.Context, _ string, _ func(any) bool) { <-ctx.Done() }
