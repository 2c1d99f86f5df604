package manager

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/partition"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// written returns the values of metrics, by name and labels.
func written(t *testing.T, m *metrics) map[string]float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(&m.Family)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]float64)
	for _, f := range families {
		for _, one := range f.GetMetric() {
			name := []string{strings.TrimPrefix(f.GetName(), m.Prefix)}
			for _, l := range one.GetLabel() {
				name = append(name, l.GetValue())
			}
			out[strings.Join(name, " ")] = one.GetCounter().GetValue() + float64(one.GetHistogram().GetSampleCount())
		}
	}
	return out
}

func newTestMetrics() *metrics {
	return newMetrics(&Manager{cfg: Config{Metrics: prometheus.NewRegistry()}})
}

// TestDeletedNamespaceLeavesNothing: the metrics of a deleted namespace are removed.
func TestDeletedNamespaceLeavesNothing(t *testing.T) {
	m := newTestMetrics()
	before := len(written(t, m))
	for _, ns := range []leasehold.Namespace{"stays", "goes"} {
		m.countNote(ns, machine.Note{What: machine.NoteMoveDone, Took: 1})
		m.countNote(ns, machine.Note{What: machine.NotePolicyRefused})
	}
	both := written(t, m)
	m.prune(map[leasehold.Namespace]bool{"stays": true})
	one := written(t, m)
	if len(both)-len(one) != len(one)-before || len(one) == before {
		t.Errorf("%d series, with two namespaces %d, with one %d", before, len(both), len(one))
	}
	for name := range one {
		if strings.Contains(name, "goes") {
			t.Errorf("%s is still there", name)
		}
	}
	if one["moves_total stays moved"] != 1 || one["policy_failures_total stays"] != 1 {
		t.Errorf("%v", one)
	}
}

// TestTimedPolicy: a timed policy behaves like the policy.
func TestTimedPolicy(t *testing.T) {
	m := newTestMetrics()
	for _, name := range partition.Names() {
		if name == (partition.Static{}).Name() {
			continue // it needs slots
		}
		p, err := partition.ByName(name, partition.Options{})
		if err != nil {
			t.Fatal(err)
		}
		timed := m.timePolicy("pool", p)
		if timed.Name() != name || partition.UsesLoads(timed) != partition.UsesLoads(p) {
			t.Errorf("%s: named %s, uses loads: %t", name, timed.Name(), partition.UsesLoads(timed))
		}
		in := partition.Input{Members: []partition.Member{{Owner: "a", Weight: 1}}}
		if _, err := partition.Apply(timed, in); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	static, err := partition.NewStatic([]partition.Slot{{Owner: "a"}, {Start: 1 << 63, Owner: "absent"}})
	if err != nil {
		t.Fatal(err)
	}
	in := partition.Input{Members: []partition.Member{{Owner: "a", Weight: 1}}}
	if _, err := partition.Apply(m.timePolicy("pool", static), in); err != nil {
		t.Errorf("a slot whose owner is absent: %v", err)
	}
	if n := written(t, m)["policy_duration_seconds pool"]; n < 3 {
		t.Errorf("%v were timed", n)
	}
	if p := (*metrics)(nil).timePolicy("pool", partition.Consistent{}); p != (partition.Consistent{}) {
		t.Error("a policy is timed without metrics")
	}
}

// sick is a store that fails.
type sick struct{ store.Store }

func (sick) Record(context.Context, bool) (storage.Record, error) {
	return storage.Record{}, errors.New("no")
}

// TestStoreMetrics: requests are timed by kind, and those that fail are counted.
func TestStoreMetrics(t *testing.T) {
	m := newTestMetrics()
	healthy, ill := m.timeStore(mem.New()), m.timeStore(sick{})
	if _, err := healthy.Record(t.Context(), true); err != nil {
		t.Error(err)
	}
	if _, err := healthy.Catalog(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := ill.Record(t.Context(), true); err == nil {
		t.Error("the failing store succeeds")
	}
	got := written(t, m)
	for name, want := range map[string]float64{
		"store_request_duration_seconds read_record": 2, "store_errors_total read_record": 1,
		"store_request_duration_seconds read_catalog": 1, "store_errors_total read_catalog": 0, "store_errors_total append": 0,
	} {
		if have, there := got[name]; !there || have != want {
			t.Errorf("%s: %v, want %v", name, have, want)
		}
	}
}

// BenchmarkReport measures a scrape with 1,000 owners and 64,000 ranges, without the survey of the machine. Encoding
// the table, which happens only after a change, is measured separately.
func BenchmarkReport(b *testing.B) {
	const owners, ranges = 1000, 64_000
	t := table.New()
	for i := range ranges {
		r := leasehold.Range{Start: leasehold.Key(i) << 48, Limit: leasehold.Key(i+1) << 48}
		holder := &table.Holder{Owner: leasehold.OwnerID(strconv.Itoa(i % owners)), Session: leasehold.Session{1}, Addr: "10.0.0.1:8080", Weight: 1}
		if err := t.Apply(&table.Change{LSN: leasehold.LSN(i + 1), Kind: table.Granted, Range: r, Generation: leasehold.Generation(i + 1), Holder: holder}); err != nil {
			b.Fatal(err)
		}
	}
	m := newTestMetrics()
	s := survey{name: "pool", table: t}
	b.Run("report", func(b *testing.B) {
		for b.Loop() {
			s.report(&m.gauges, func(*prometheus.Desc, float64, ...string) {})
		}
	})
	b.Run("size", func(b *testing.B) {
		for b.Loop() {
			clear(m.sizes)
			m.size(&s)
		}
	})
}
