package propagation

import (
	"os"
	"testing"

	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
)

// TestMain lets the test binary run in roles, as the program does.
func TestMain(m *testing.M) {
	locks.Play()
	proc.Play(Roles())
	os.Exit(m.Run())
}

// TestContest: all listeners of all contestants receive changes of equal size.
func TestContest(t *testing.T) {
	s := size{20, 4}
	var all []*contestant
	for _, e := range starters() {
		c, err := startContestant(t.Context(), t.TempDir(), s, e)
		if err != nil {
			t.Fatal(err)
		}
		defer c.end()
		all = append(all, c)
	}
	rounds := 0
	found, err := contest(t.Context(), all, 2, func(int) { rounds++ })
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || rounds != 4 {
		t.Fatalf("%d outcomes of %d turns", len(found), rounds)
	}
	for _, o := range found {
		if o.bytes != found[0].bytes || o.bytes < 1000 {
			t.Errorf("%s has %d bytes, leasehold %d", o.name, o.bytes, found[0].bytes)
		}
		if len(o.turns) != 2 || o.halves[0] <= 0 || o.turns[0] < o.halves[0] {
			t.Errorf("%+v", o)
		}
	}
}
