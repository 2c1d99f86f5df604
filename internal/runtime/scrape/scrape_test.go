package scrape

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
)

// ours is a collector type like that of a role.
type ours struct{ Family }

func newOurs(ns string) *ours {
	o := &ours{Family{Prefix: "ours_", Labels: prometheus.Labels{"namespace": ns}}}
	o.Counter("total", "Ours.")
	return o
}

// Equal collectors are registered once, also through a Registerer that adds labels. Different labels make
// another collector, and a name conflict is an error.
func TestShare(t *testing.T) {
	plain := prometheus.NewRegistry()
	for name, r := range map[string]prometheus.Registerer{
		"plain": plain, "wrapped": prometheus.WrapRegistererWith(prometheus.Labels{"server": "a"}, prometheus.NewRegistry()),
		"twice wrapped": prometheus.WrapRegistererWithPrefix("x_", prometheus.WrapRegistererWith(prometheus.Labels{"server": "b"}, prometheus.NewRegistry())),
	} {
		first, err := Share(r, newOurs("n"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if second, err := Share(r, newOurs("n")); err != nil || second != first {
			t.Errorf("%s: the second is not the first: %v", name, err)
		}
		if other, err := Share(r, newOurs("m")); err != nil || other == first {
			t.Errorf("%s: another namespace: %v", name, err)
		}
	}
	_, err := Share(plain, prometheus.NewGauge(prometheus.GaugeOpts{Name: "ours_total", Help: "Theirs."}))
	if leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), "use another Registerer") {
		t.Errorf("a name that is taken: %v", err)
	}
	_, err = Share(plain, &newOurs("n").Family) // the same names, of another type
	if leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("another type: %v", err)
	}
}

// Label values are few, also for unknown causes and kinds, and need no quotes.
func TestLabels(t *testing.T) {
	for c := range 256 {
		if v := Cause(leasehold.Cause(c)); strings.ContainsAny(v, " ()\"") || c > int(leasehold.CauseDied) && v != "unknown" {
			t.Errorf("cause %d: %q", c, v)
		}
		if v := Kind(leasehold.Kind(c)); strings.ContainsAny(v, " ()\"") || c > int(leasehold.ErrIndeterminate) && v != "error" {
			t.Errorf("kind %d: %q", c, v)
		}
	}
	if n := len(Causes()); n != 9 {
		t.Errorf("%d causes", n)
	}
}
