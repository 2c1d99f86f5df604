package ownership

import (
	"os"
	"testing"

	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
)

// TestMain runs roles in the test binary.
func TestMain(m *testing.M) {
	managers.Play()
	locks.Play()
	os.Exit(m.Run())
}

// TestContestants: each check succeeds, and each update finds its value.
func TestContestants(t *testing.T) {
	var ends proc.Cleanup
	defer ends.Close()
	o, err := joinOwner(t.Context(), t.TempDir(), &ends)
	if err != nil {
		t.Fatal(err)
	}
	checks, err := checkContestants(t.Context(), o, t.TempDir(), &ends)
	if err != nil {
		t.Fatal(err)
	}
	maps, err := mapContestants(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	const n = 100
	for _, c := range append(checks, maps...) {
		got := c.Run(n)
		if got < n { // each operation returns at least 1, a clock reading nanoseconds
			t.Errorf("%s: %d of %d operations succeed", c.Name, got, n)
		}
	}
}
