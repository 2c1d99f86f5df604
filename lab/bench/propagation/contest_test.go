package main

import (
	"os"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
)

// TestMain lets the test binary run in roles, as the program does.
func TestMain(m *testing.M) {
	proc.Play(roles())
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
	found, err := contest(t.Context(), all, 2, 0, time.Hour, func(int) { rounds++ })
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 3 || rounds != 2 {
		t.Fatalf("%d outcomes of %d rounds", len(found), rounds)
	}
	if short, err := contest(t.Context(), all, 10, 1600, 0, func(int) {}); err != nil || short[0].last.Turns != minRounds {
		t.Errorf("without time for more: %+v, %v", short, err)
	}
	for _, o := range found {
		if o.bytes != found[0].bytes || o.bytes < 1000 {
			t.Errorf("%s has %d bytes, leasehold %d", o.name, o.bytes, found[0].bytes)
		}
		if o.last.Turns != 2 || o.half.Low <= 0 || o.last.Low < o.half.Low {
			t.Errorf("%+v", o)
		}
	}
}
