package manager

import (
	"strings"
	"testing"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
)

// Rates that have faded are nothing to people.
func TestLullText(t *testing.T) {
	for _, test := range []struct {
		why        machine.Lull
		have, want float64
		says       string
	}{
		{machine.LullQuiet, 7.56e-12, 50, "there are 0 requests per second and owner in the mean, and below 50"},
		{machine.LullQuiet, 0.126, 50, "there are 0.12 requests"},
		{machine.LullQuiet, 49.999, 50, "there are 49.99 requests"},
		{machine.LullQuiet, 12, 50, "there are 12 requests"},
		{machine.LullUnknown, 1e-13, 0.5, "the loads of 0 % of the keys are known, and it takes 50 %"},
		{machine.LullUnknown, 0.12345, 0.5, "the loads of 12.34 % of the keys"},
		{machine.NoLull, 1, 1, ""},
	} {
		if got := lullText(test.why, test.have, test.want); !strings.HasPrefix(got, test.says) {
			t.Errorf("%v of %v: %q, want %q", test.have, test.want, got, test.says)
		}
	}
}
