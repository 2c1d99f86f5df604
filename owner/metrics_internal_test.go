package owner

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
)

// Each note of the machine is counted at most once,
// and clock trouble exactly once.
func TestNotesAreCounted(t *testing.T) {
	m, err := newMetrics(&Config{Namespace: "test", Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	for what := range machine.Notables() {
		m.note(machine.Notable(what))
	}
	read := func(c prometheus.Counter) float64 {
		var out dto.Metric
		if err := c.Write(&out); err != nil {
			t.Fatal(err)
		}
		return out.GetCounter().GetValue()
	}
	for name, c := range map[string]prometheus.Counter{
		"suspended": m.clock.WithLabelValues("suspended"), "slow": m.clock.WithLabelValues("slow"), "silences": m.silences,
		"race": m.dropped.WithLabelValues("race"), "late": m.dropped.WithLabelValues("late_reply"), "stale": m.dropped.WithLabelValues("stale_term"),
	} {
		if got := read(c); got != 1 {
			t.Errorf("%s: %v, want 1", name, got)
		}
	}
	(*metrics)(nil).note(machine.NoteSlept) // no effect
}
