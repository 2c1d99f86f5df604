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

// TestPlansAreTheirSeeds: the same seed is the same plan, and another one is another.
func TestPlansAreTheirSeeds(t *testing.T) {
	if diff := cmp.Diff(plan(1, cluster.Etcd, 50), plan(1, cluster.Etcd, 50)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(plan(1, cluster.Etcd, 50), plan(2, cluster.Etcd, 50)) {
		t.Error("two seeds have the same plan")
	}
}

// TestPlansHaveEverything that there is for a shape, in order, and nothing lasts beyond
// the storm unless it takes longer. Outages are plans of their own.
func TestPlansHaveEverything(t *testing.T) {
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
			t.Errorf("there is %s where there is no store", name)
		}
	}
	if slices.Contains(Kinds(in(cluster.Flease)), "store-kill") {
		t.Error("there is a store where there is none")
	}
	beyond := in(cluster.Etcd)
	beyond.Beyond = true
	if all := Kinds(beyond); slices.Contains(all, "clock-rate") || !slices.Contains(all, "owner-clock-beyond") || !slices.Contains(all, "manager-clocks-beyond") {
		t.Errorf("there are %v, with clocks beyond the bound", all)
	}
	bare := Kinds(Setting{Shape: cluster.Etcd})
	if slices.Contains(bare, "upgrade") || slices.Contains(bare, "clock-rate") {
		t.Errorf("there are %v, without another build and without rates", bare)
	}
}

func TestPlansOfSomeKinds(t *testing.T) {
	for _, s := range plan(1, cluster.Etcd, 50, "loss", "delay") {
		if s.Kind != "loss" && s.Kind != "delay" {
			t.Errorf("there is %s", s.Kind)
		}
	}
	if p := plan(1, cluster.Flease, 50, "store-kill"); p != nil {
		t.Errorf("got %v", p)
	}
}

// TestSpans: what is short spares leases, and what is long does not.
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

// TestKindsSayWhatTheyDo, each in other words, and what they take if they cannot be had everywhere.
func TestKindsSayWhatTheyDo(t *testing.T) {
	plain := Kinds(Setting{Shape: cluster.Etcd, Times: times})
	said := make(map[string]string)
	for _, f := range All() {
		if other, ok := said[f.Text]; f.Text == "" || ok {
			t.Errorf("%s says %q, as %s does", f.Name, f.Text, other)
		}
		said[f.Text] = f.Name
		if !slices.Contains(plain, f.Name) && f.Takes == "" {
			t.Errorf("%s cannot be had with --store etcd, and does not say what it takes", f.Name)
		}
	}
	if len(said) != len(every()) {
		t.Errorf("%d kinds, want %d", len(said), len(every()))
	}
}
