package sim_test

import (
	"maps"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/sim"
)

// FuzzParseMix: a mix is refused, or is the same after being written and read again.
func FuzzParseMix(f *testing.F) {
	for _, text := range []string{"default", "none", "loss=1", "default,loss=0", "loss=-1", "loss", "=1", "loss=1,loss=2", "none,default", "", "loss=+1", "loss=99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := sim.ParseMix(text)
		if err != nil {
			if leasehold.KindOf(err) != leasehold.Invalid {
				t.Fatal(err)
			}
			return
		}
		again, err := sim.ParseMix(m.String())
		if err != nil || !maps.Equal(m, again) {
			t.Fatalf("%q is written %q, which is read as %v, %v", text, m, again, err)
		}
	})
}
