package nemesis

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
)

var times = Times{Lease: 3 * time.Second, Hold: 3600 * time.Millisecond, TTL: time.Second, Yield: 1200 * time.Millisecond}

func in(shape cluster.Shape) Setting {
	return Setting{Shape: shape, Times: times, Other: true, Drift: true}
}

func plan(seed uint64, shape cluster.Shape, n int, named ...string) []Strike {
	return Plan(rand.New(rand.NewPCG(seed, 1)), in(shape), n, 8*time.Second, named)
}

// TestPlansAreReproducible: the same seed has the same plan, and another seed another one.
func TestPlansAreReproducible(t *testing.T) {
	if diff := cmp.Diff(plan(1, cluster.Etcd, 50), plan(1, cluster.Etcd, 50)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(plan(1, cluster.Etcd, 50), plan(2, cluster.Etcd, 50)) {
		t.Error("two seeds have the same plan")
	}
}

// TestPlansHaveAllKinds: all kinds of a shape, in order, and within the storm unless a strike lasts longer.
// Outages have plans of their own.
func TestPlansHaveAllKinds(t *testing.T) {
	for _, shape := range cluster.Shapes() {
		seen := make(map[string]bool)
		var last time.Duration
		for _, s := range plan(1, shape, 2000) {
			if s.At < last || s.At+s.For > max(8*time.Second, s.For) || s.For <= 0 {
				t.Errorf("%+v after %v", s, last)
			}
			last, seen[s.Kind] = s.At, true
		}
		for _, s := range outagePlans(shape, 200, time.Hour, 0) {
			if seen[s.Kind] = true; s.At != 0 || s.For < ShortestOutage || s.For > longestOutage {
				t.Errorf("%+v", s)
			}
		}
		for _, name := range Kinds(in(shape)) {
			if !seen[name] {
				t.Errorf("%s: no %s", shape, name)
			}
		}
		if len(seen) != len(Kinds(in(shape))) {
			t.Errorf("%s: %d kinds, want %d", shape, len(seen), len(Kinds(in(shape))))
		}
	}
	for _, name := range []string{"store-outage-kill", StoreRestore} {
		if slices.Contains(Kinds(in(cluster.Flease)), name) {
			t.Errorf("%s without a store", name)
		}
	}
	if slices.Contains(Kinds(in(cluster.Flease)), "store-kill") {
		t.Error("store-kill without a store")
	}
	beyond := in(cluster.Etcd)
	beyond.Beyond = true
	if all := Kinds(beyond); slices.Contains(all, "clock-rate") || !slices.Contains(all, "owner-clock-beyond") || !slices.Contains(all, "manager-clocks-beyond") {
		t.Errorf("kinds %v with clocks beyond the bound", all)
	}
	bare := Kinds(Setting{Shape: cluster.Etcd})
	if slices.Contains(bare, "upgrade") || slices.Contains(bare, "clock-rate") {
		t.Errorf("kinds %v without another build and without rates", bare)
	}
}

func TestPlansOfSomeKinds(t *testing.T) {
	for _, s := range plan(1, cluster.Etcd, 50, "loss", "delay") {
		if s.Kind != "loss" && s.Kind != "delay" {
			t.Errorf("unexpected %s", s.Kind)
		}
	}
	if p := plan(1, cluster.Flease, 50, "store-kill"); p != nil {
		t.Errorf("got %v", p)
	}
}

// TestSpans: short spans keep leases, and long ones do not.
func TestSpans(t *testing.T) {
	for _, s := range plan(1, cluster.Etcd, 5000) {
		switch {
		case s.Kind == "owner-pause-short" && s.For > times.Lease/2,
			s.Kind == "owner-pause-long" && s.For < times.Hold,
			s.Kind == "leader-pause-short" && s.For > times.TTL/2,
			s.Kind == "leader-pause-long" && s.For < times.Yield,
			s.Kind == "leader-minority" && s.For < times.Yield+times.Hold:
			t.Errorf("%s lasts %v", s.Kind, s.For)
		}
	}
}

// TestKindsHaveDescriptions: each kind has a description of its own, and its required flags.
func TestKindsHaveDescriptions(t *testing.T) {
	plain := Kinds(Setting{Shape: cluster.Etcd, Times: times})
	texts := make(map[string]string)
	for _, f := range All() {
		if other, ok := texts[f.Text]; f.Text == "" || ok {
			t.Errorf("%s has the description %q of %s", f.Name, f.Text, other)
		}
		texts[f.Text] = f.Name
		if !slices.Contains(plain, f.Name) && f.Takes == "" {
			t.Errorf("%s is not possible with --store etcd, but has no required flags", f.Name)
		}
	}
	if len(texts) != len(every()) {
		t.Errorf("%d kinds, want %d", len(texts), len(every()))
	}
}
