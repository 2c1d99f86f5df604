package manager_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/partition"
)

// A policy that goes by loads needs to know them, and that there are any.
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
		{"nothing is known", partition.Balanced{}, nil, manager.LullUnknown, 0, 0.9},
		{"too little is known", partition.Balanced{}, &partition.Loads{Cells: []partition.Cell{{Range: most, Rate: 1000}}}, manager.LullUnknown, 0.875, 0.9},
		{"there is little to do", partition.Adaptive{}, &partition.Loads{Cells: []partition.Cell{{Range: everything, Rate: 49}}}, manager.LullQuiet, 49, 50},
		{"there is enough to do", partition.Balanced{}, &partition.Loads{Cells: []partition.Cell{{Range: everything, Rate: 51}}}, manager.NoLull, 0, 0},
		{"loads do not matter", partition.Consistent{}, nil, manager.NoLull, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newPaperLeader(t, func(cfg *manager.Config) { cfg.Policy = c.policy })
			if why, _, _ := l.machine.Lull(); why != manager.NoLull {
				t.Errorf("without owners there is a lull: %d", why)
			}
			a := l.mover("a")
			a.moving.loads = c.loads
			a.say()
			l.settle()
			if why, have, want := l.machine.Lull(); why != c.why || have != c.have || want != c.want {
				t.Errorf("it is %d, with %v of %v; want %d, with %v of %v", why, have, want, c.why, c.have, c.want)
			}
		})
	}
}
