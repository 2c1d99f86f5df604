package plural_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/runtime/plural"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 leases", 1: "1 lease", 2: "2 leases"} {
		if got := plural.Count(n, "lease"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
