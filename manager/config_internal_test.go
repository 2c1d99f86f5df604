package manager

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// A namespace that was stored without a policy, by an old version, continues with consistent hashing.
func TestStoredPolicy(t *testing.T) {
	for stored, want := range map[string]string{
		"": "consistent", "consistent": "consistent", "adaptive": "adaptive", "balanced": "balanced", "even": "even", "static": "static",
	} {
		cfg, err := (&Config{}).configure(storage.Namespace{
			Name: "pool", Lease: 10 * time.Second, Renew: time.Second, Drift: 1.2, Policy: stored, Static: []storage.StaticSlot{{Owner: "a"}},
			Churn: 0.5, Rebalance: 3 * time.Second, Moves: 2, MoveTimeout: time.Hour, MinLoad: 0.25,
		})
		if err != nil || cfg.Policy.Name() != want {
			t.Errorf("policy of %q: %v (%v), want %s", stored, cfg.Policy, err, want)
		}
		if cfg.Churn != 0.5 || cfg.Rebalance != 3*time.Second || cfg.Moves != 2 || cfg.MoveTimeout != time.Hour || cfg.MinLoad != 0.25 {
			t.Errorf("settings of %q: %v, %v, %v, %v and %v", stored, cfg.Churn, cfg.Rebalance, cfg.Moves, cfg.MoveTimeout, cfg.MinLoad)
		}
	}
	_, err := (&Config{}).configure(storage.Namespace{Name: "pool", Lease: 10 * time.Second, Renew: time.Second, Drift: 1.2, Policy: "psychic"})
	if leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("unknown policy: %v", err)
	}
}

// A diskless group rejects a namespace with leases above its bound.
func TestLongestLease(t *testing.T) {
	n := storage.Namespace{Name: "pool", Lease: 10 * time.Second, Renew: time.Second, Drift: 1.2, Moves: 1}
	for longest, kind := range map[time.Duration]leasehold.Kind{12 * time.Second: 0, 12*time.Second - 1: leasehold.ErrInvalid} {
		_, err := (&Config{Peers: &Peers{Longest: longest}}).configure(n)
		if (err == nil) != (kind == 0) || err != nil && leasehold.KindOf(err) != kind {
			t.Errorf("a hold of 12 s where %v is allowed: %v", longest, err)
		}
	}
}

// A namespace that was stored with more concurrent moves than are allowed now is served with the maximum.
func TestStoredMoves(t *testing.T) {
	cfg, err := (&Config{}).configure(storage.Namespace{Name: "pool", Lease: 10 * time.Second, Renew: time.Second, Drift: 1.2, Moves: 256})
	if err != nil || cfg.Moves != protocol.MaxAtATime {
		t.Errorf("%d concurrent moves (%v), want %d", cfg.Moves, err, protocol.MaxAtATime)
	}
}
