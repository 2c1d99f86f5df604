package manager

import (
	"strings"
	"testing"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
)

// Rates close to 0 are shown as 0.
func TestLullText(t *testing.T) {
	for _, test := range []struct {
		why        machine.Lull
		have, want float64
		says       string
	}{
		{machine.LullQuiet, 7.56e-12, 50, "the mean load is 0 requests per second and owner, and rebalancing starts at 50"},
		{machine.LullQuiet, 0.126, 50, "the mean load is 0.12 requests"},
		{machine.LullQuiet, 49.999, 50, "the mean load is 49.99 requests"},
		{machine.LullQuiet, 12, 50, "the mean load is 12 requests"},
		{machine.LullUnknown, 1e-13, 0.5, "the loads of 0 % of the keys are known, and rebalancing starts at 50 %"},
		{machine.LullUnknown, 0.12345, 0.5, "the loads of 12.34 % of the keys"},
		{machine.NoLull, 1, 1, ""},
	} {
		if got := lullText(test.why, test.have, test.want, "requests"); !strings.HasPrefix(got, test.says) {
			t.Errorf("%v of %v: %q, want %q", test.have, test.want, got, test.says)
		}
	}
}
