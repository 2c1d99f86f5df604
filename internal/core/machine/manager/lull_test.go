package manager_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/partition"
)

// A policy that uses loads needs reports of loads, and a minimum of load.
func TestLull(t *testing.T) {
	everything := leasehold.Range{}
	most := leasehold.Range{Limit: 14 << 60} // seven eighths
	for _, c := range []struct {
		name       string
		policy     partition.Policy
		loads      *partition.Loads
		why        manager.Lull
		have, want float64
	}{
		{"no reports", partition.Balanced{}, nil, manager.LullUnknown, 0, 0.9},
		{"reports of too few keys", partition.Balanced{}, &partition.Loads{Cells: []partition.Cell{{Range: most, Rate: 1000}}}, manager.LullUnknown, 0.875, 0.9},
		{"low load", partition.Adaptive{}, &partition.Loads{Cells: []partition.Cell{{Range: everything, Rate: 49}}}, manager.LullQuiet, 49, 50},
		{"enough load", partition.Balanced{}, &partition.Loads{Cells: []partition.Cell{{Range: everything, Rate: 51}}}, manager.NoLull, 0, 0},
		{"policy without loads", partition.Consistent{}, nil, manager.NoLull, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newPaperLeader(t, func(cfg *manager.Config) { cfg.Policy = c.policy })
			if why, _, _ := l.machine.Lull(); why != manager.NoLull {
				t.Errorf("without owners the lull is %d", why)
			}
			a := l.mover("a")
			a.moving.loads = c.loads
			a.send()
			l.settle()
			if why, have, want := l.machine.Lull(); why != c.why || have != c.have || want != c.want {
				t.Errorf("the lull is %d, with %v of %v; want %d, with %v of %v", why, have, want, c.why, c.have, c.want)
			}
		})
	}
}
