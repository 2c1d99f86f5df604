package manager_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

func TestConfigRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*manager.Config)
		want  string
	}{
		{"no namespace", func(c *manager.Config) { c.Namespace = "" }, `namespace: want 1 to 64 characters, have 0 bytes`},
		{"no manager ID", func(c *manager.Config) { c.Self = "" }, `manager "pool": Self and Rand must be set`},
		{"no random source", func(c *manager.Config) { c.Rand = nil }, `manager "pool": Self and Rand must be set`},
		{"bad timing", func(c *manager.Config) { c.Timing.Lease = 1 }, `timing "1ns": a lease lasts 10ms to 24h0m0s`},
		{"negative limit of owners", func(c *manager.Config) { c.MaxOwners = -1 }, `manager "pool": MaxOwners is -1, want more than 0`},
		{"negative change log", func(c *manager.Config) { c.Log.Changes = -1 }, `manager "pool": LogChanges is -1, want more than 0`},
		{"negative batch size", func(c *manager.Config) { c.Log.BatchChanges = -1 }, `manager "pool": BatchChanges is -1, want more than 0`},
		{"negative snapshot interval", func(c *manager.Config) { c.Log.SnapshotEvery = -1 }, `manager "pool": SnapshotEvery is -1, want more than 0`},
		{"negative backoff", func(c *manager.Config) { c.Backoff = -1 }, `manager "pool": backoff -1ns, log age 5m0s and promised lease time 0s must not be negative`},
		{"too many moves", func(c *manager.Config) { c.Moves = 65 }, `manager "pool": Moves is 65, want at most 64`},
		{"negative limit of moves", func(c *manager.Config) { c.Moves = -1 }, `manager "pool": Moves is -1, want more than 0`},
		{"negative move timeout", func(c *manager.Config) { c.MoveTimeout = -1 }, `manager "pool": move timeout -1ns and rebalance 10s must not be negative, churn 0.09 must be 0 to 1`},
		{"churn above all keys", func(c *manager.Config) { c.Churn = 1.5 }, `manager "pool": move timeout 1m0s and rebalance 10s must not be negative, churn 1.5 must be 0 to 1`},
		{"churn not a number", func(c *manager.Config) { c.Churn = math.NaN() }, `manager "pool": move timeout 1m0s and rebalance 10s must not be negative, churn NaN must be 0 to 1`},
		{"negative log age", func(c *manager.Config) { c.Log.Age = -1 }, `manager "pool": backoff 200ms, log age -1ns and promised lease time 0s must not be negative`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := poolConfig()
			c.spoil(&cfg)
			_, err := manager.New(0, cfg, 1, mono.Never, &storage.State{})
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" || !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("kind %v (-want +got):\n%s", leasehold.KindOf(err), diff)
			}
		})
	}
}

func TestNewRefusesABrokenLog(t *testing.T) {
	_, err := manager.New(0, poolConfig(), 1, mono.Never, &storage.State{Changes: []table.Change{{LSN: 2}}})
	if !errors.Is(err, leasehold.ErrInternal) {
		t.Errorf("error %v, want %v", err, leasehold.ErrInternal)
	}
}

// A deposed leader does nothing.
func TestDeposedIsOver(t *testing.T) {
	p := newPool(t, &storage.State{})
	r := &protocol.LeaseRequest{Namespace: poolNamespace, Holder: poolHolder(1), Seq: 1}
	p.machine.Step(p.now, manager.Request{LeaseRequest: r})
	r = &protocol.LeaseRequest{Namespace: poolNamespace, Holder: poolHolder(1), Seq: 2, Term: 1, Heard: 1, Applied: 1}
	p.machine.Step(p.now, manager.Request{LeaseRequest: r}) // its grant is pending
	p.machine.Step(p.now, manager.Committed{Outcome: storage.Unknown})
	actions, wake := p.machine.Step(p.now, manager.LogEnd{Term: 2})
	if diff := cmp.Diff([]manager.Action{manager.Deposed{By: 2}}, actions); diff != "" || wake != mono.Never {
		t.Errorf("woken at %v (-want +got):\n%s", wake, diff)
	}
	for name, f := range map[string]func() ([]manager.Action, mono.Instant){
		"a request": func() ([]manager.Action, mono.Instant) {
			return p.machine.Step(p.now, manager.Request{LeaseRequest: r})
		},
		"time": func() ([]manager.Action, mono.Instant) { return p.machine.Advance(p.now) },
	} {
		if actions, wake := f(); len(actions) != 0 || wake != mono.Never {
			t.Errorf("%s: actions %v, wake-up at %v", name, actions, wake)
		}
	}
	if p.machine.Term() != 1 {
		t.Errorf("its term is %d, want 1", p.machine.Term())
	}
}

// twoSessions returns a table in which an owner name has leases of two sessions: the leader failed while it granted
// one's leases to the other.
func twoSessions(swapped bool) (older, newer *table.Holder, state *storage.State) {
	older, newer = poolHolder(1), poolHolder(2)
	newer.Owner = older.Owner
	low, high := leasehold.Range{Limit: 100}, leasehold.Range{Start: 100}
	if swapped {
		low, high = high, low
	}
	return older, newer, &storage.State{Changes: []table.Change{
		{LSN: 1, Kind: table.Granted, Range: low, Generation: 1, Holder: older},
		{LSN: 2, Kind: table.Granted, Range: high, Generation: 2, Holder: newer},
	}}
}

// Of two sessions of one owner name in the stored table the later one has the name; the other expires, and the
// later one gets all ranges.
func TestTwoSessionsInTheTable(t *testing.T) {
	for _, swapped := range []bool{false, true} {
		_, newer, state := twoSessions(swapped)
		p := newPool(t, state)
		o := p.join(newer)
		for range 7 { // of 2 s: the older session has 12
			p.settle()
			if p.now < mono.Instant(time.Hour).Add(protocol.DefaultTiming().Hold()) && len(o.leases) != 1 {
				t.Fatalf("at %v the newer session has %v", p.now, o.leases)
			}
			p.now = p.now.Add(2 * time.Second)
			p.send(o)
		}
		p.settle()
		p.requireSettled()
	}
}

// If the older session sends a request, it gets no leases, releases its own, and the newer one need not wait for
// their expiry.
func TestOlderSessionSpeaks(t *testing.T) {
	older, newer, state := twoSessions(false)
	p := newPool(t, state)
	first, second := p.join(newer), p.join(older)
	second.leases = []leasehold.Lease{{Range: leasehold.Range{Limit: 100}, Generation: 1}}
	p.settle()
	if len(second.leases) != 0 {
		t.Errorf("the older session still has %v", second.leases)
	}
	var keys uint64
	for _, l := range first.leases {
		keys += l.Range.Size()
	}
	if keys != 0 { // 2^64 keys: all of them
		t.Errorf("the newer session has %v", first.leases)
	}
}
