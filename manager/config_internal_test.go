package manager

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// What is stored means what it meant: a namespace from before there was a choice
// of policies goes on with consistent hashing.
func TestStoredPolicy(t *testing.T) {
	for stored, want := range map[string]string{
		"": "consistent", "consistent": "consistent", "adaptive": "adaptive", "balanced": "balanced", "even": "even", "static": "static",
	} {
		cfg, err := (&Config{}).configure(storage.Namespace{
			Name: "pool", Lease: 10 * time.Second, Renew: time.Second, Drift: 1.2, Policy: stored, Static: []storage.StaticSlot{{Owner: "a"}},
			Churn: 0.5, Rebalance: 3 * time.Second, Moves: 2, MoveTimeout: time.Hour,
		})
		if err != nil || cfg.Policy.Name() != want {
			t.Errorf("%q is led as %v (%v), want %s", stored, cfg.Policy, err, want)
		}
		if cfg.Churn != 0.5 || cfg.Rebalance != 3*time.Second || cfg.Moves != 2 || cfg.MoveTimeout != time.Hour {
			t.Errorf("%q is led with %v, %v, %v and %v", stored, cfg.Churn, cfg.Rebalance, cfg.Moves, cfg.MoveTimeout)
		}
	}
	_, err := (&Config{}).configure(storage.Namespace{Name: "pool", Lease: 10 * time.Second, Renew: time.Second, Drift: 1.2, Policy: "psychic"})
	if leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("a policy that nobody knows: %v", err)
	}
}

// A namespace whose leases the group could not wait out is not led.
func TestLongestLease(t *testing.T) {
	n := storage.Namespace{Name: "pool", Lease: 10 * time.Second, Renew: time.Second, Drift: 1.2, Moves: 1}
	for longest, kind := range map[time.Duration]leasehold.Kind{12 * time.Second: 0, 12*time.Second - 1: leasehold.ErrInvalid} {
		_, err := (&Config{Peers: &Peers{Longest: longest}}).configure(n)
		if (err == nil) != (kind == 0) || err != nil && leasehold.KindOf(err) != kind {
			t.Errorf("a hold of 12 s where %v is allowed: %v", longest, err)
		}
	}
}

// A namespace that was stored when more moves at a time were allowed is led, with
// as many as owners can do.
func TestStoredMoves(t *testing.T) {
	cfg, err := (&Config{}).configure(storage.Namespace{Name: "pool", Lease: 10 * time.Second, Renew: time.Second, Drift: 1.2, Moves: 256})
	if err != nil || cfg.Moves != protocol.MaxAtATime {
		t.Errorf("it is led with %d moves at a time (%v), want %d", cfg.Moves, err, protocol.MaxAtATime)
	}
}
