package nemesis

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
)

// outagePlans draws outages.
func outagePlans(shape cluster.Shape, n int, left, exact time.Duration, named ...string) (all []Strike) {
	random := rand.New(rand.NewPCG(1, 1))
	for range n {
		setting := in(shape)
		setting.Copied = true
		if s, ok := PlanOutage(random, setting, left, exact, named, nil); ok {
			all = append(all, s)
		}
	}
	return all
}

// TestOutageTimes: most outages are short and some are minutes long. The remaining time of the run limits
// them, and an exact time replaces the drawn one.
func TestOutageTimes(t *testing.T) {
	var drawn []time.Duration
	for _, s := range outagePlans(cluster.Etcd, 1000, time.Hour, 0) {
		drawn = append(drawn, s.For)
	}
	slices.Sort(drawn)
	if median, most := drawn[500], drawn[999]; median > 10*time.Second || most < 4*time.Minute || drawn[0] < ShortestOutage {
		t.Errorf("outages last %v to %v, median %v", drawn[0], most, median)
	}
	for _, s := range outagePlans(cluster.Etcd, 100, 20*time.Second, 0) {
		if s.For > 20*time.Second/3 {
			t.Errorf("an outage lasts %v, with 20 s left", s.For)
		}
	}
	for _, s := range outagePlans(cluster.Etcd, 10, -time.Second, time.Minute) {
		if s.For != time.Minute {
			t.Errorf("an outage lasts %v, want 1m", s.For)
		}
	}
}

// TestOutageKinds: only named kinds are drawn; a soak has no outage that ends a spared process, and there are
// no outages with clocks beyond the bound.
func TestOutageKinds(t *testing.T) {
	for _, s := range outagePlans(cluster.External, 50, time.Hour, 0, ManagersCut, "loss") {
		if s.Kind != ManagersCut {
			t.Errorf("unexpected %s", s.Kind)
		}
	}
	if all := outagePlans(cluster.External, 1, time.Hour, 0, "loss"); all != nil {
		t.Errorf("unexpected %v", all)
	}
	soak := in(cluster.External)
	soak.Spare = true
	if HasRestores(soak, nil) || slices.Contains(Kinds(soak), ManagersKill) || !HasOutages(soak, nil) {
		t.Errorf("a soak has %v", Kinds(soak))
	}
	beyond := in(cluster.Etcd)
	beyond.Beyond = true
	if HasOutages(beyond, nil) || !HasStorms(beyond, nil) || HasStorms(beyond, []string{ManagersCut}) {
		t.Errorf("beyond the bound there are %v", Kinds(beyond))
	}
}

// TestRareOutagesFirst: each kind is drawn once before one is drawn twice.
func TestRareOutagesFirst(t *testing.T) {
	random, setting, struck := rand.New(rand.NewPCG(1, 1)), in(cluster.External), make(map[string]int)
	setting.Copied = true
	for range 2 * len(outages()) {
		s, _ := PlanOutage(random, setting, time.Hour, 0, nil, struck)
		struck[s.Kind]++
	}
	for _, k := range outages() {
		if struck[k.name] != 2 {
			t.Errorf("%s: %d times, want 2", k.name, struck[k.name])
		}
	}
}

// TestYoungCopies: a store whose copy is young is restored only if there is no other outage.
func TestYoungCopies(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		if s, ok := PlanOutage(random, in(cluster.Etcd), time.Hour, 0, nil, nil); !ok || s.Kind == StoreRestore {
			t.Errorf("%+v, %t", s, ok)
		}
	}
	if s, ok := PlanOutage(random, in(cluster.Etcd), time.Hour, 0, []string{StoreRestore}, nil); !ok || s.Kind != StoreRestore {
		t.Errorf("%+v, %t", s, ok)
	}
}

// TestNoCopyNoRestore: a store is not restored without a copy.
func TestNoCopyNoRestore(t *testing.T) {
	m := &cluster.Member{}
	n := &Nemesis{Cluster: &cluster.Cluster{Managers: []*cluster.Member{m}}}
	if victims, _, err := restore(context.Background(), n, Strike{}); victims != "" || err != nil || !m.Claim() {
		t.Errorf("struck %q: %v", victims, err)
	}
}
