package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test binary also the child.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == childRole {
		os.Exit(playChild(os.Args[2], os.Args[3] == "true"))
	}
	os.Exit(m.Run())
}

// TestHotPaths fails if a hot path has more allocations than recorded. It does not count
// instructions, since tracing is slow on a busy machine.
func TestHotPaths(t *testing.T) {
	recorded, err := readRecord("recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	costs, err := countAll(t.Context(), false, nil)
	if costs == nil {
		t.Fatal(err)
	}
	for _, text := range recorded.worse(costs) {
		t.Errorf("%s; if it is justified: cd lab/bench && go run ./guard -record", text)
	}
}

func TestWorse(t *testing.T) {
	before := newRecord(map[string]cost{"lookup.Find": {100, 0}, "owner.Check": {1000, 2}})
	for name, c := range map[string]struct {
		now  map[string]cost
		says []string
	}{
		"the same":     {map[string]cost{"lookup.Find": {100, 0}, "owner.Check": {1000, 2}}, nil},
		"within 10 %":  {map[string]cost{"lookup.Find": {110, 0}, "owner.Check": {900, 1}}, nil},
		"instructions": {map[string]cost{"lookup.Find": {111, 0}}, []string{"lookup.Find: 111 instructions, recorded 100 (+11.0 %)"}},
		"allocations":  {map[string]cost{"owner.Check": {1000, 3}}, []string{"owner.Check: 3 allocations, recorded 2"}},
		"not counted":  {map[string]cost{"lookup.Find": {0, 0}}, nil},
		"new":          {map[string]cost{"owner.Held": {1, 0}}, []string{"owner.Held: not recorded: go run ./guard -record in lab/bench"}},
	} {
		if got := before.worse(c.now); !slices.Equal(got, c.says) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
	before.Go = "go0.9"
	if got := before.worse(map[string]cost{"lookup.Find": {999, 0}}); got != nil || before.fits() == nil {
		t.Errorf("compared with another release of Go: %q", got)
	}
	before.Paths["gone"] = cost{}
	if got := before.worse(nil); len(got) != 1 || !strings.Contains(got[0], "gone: recorded, but no longer a path") {
		t.Errorf("got %q", got)
	}
}

func TestRelease(t *testing.T) {
	for version, want := range map[string]string{"go1.26.8": "go1.26", "go1.27rc1": "go1.27rc1", "devel": "devel"} {
		if got := release(version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}

// TestChildReportsErrors: a path that cannot be started is an error.
func TestChildReportsErrors(t *testing.T) {
	if _, err := count(t.Context(), "no such path", true); err == nil || !strings.Contains(err.Error(), "no such path") {
		t.Errorf("got %v", err)
	}
}

// TestTracingEnds: if the child is killed at the time limit, tracing ends with that error.
func TestTracingEnds(t *testing.T) {
	over := errors.New("time is up")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 600*time.Millisecond, over)
	defer cancel()
	switch _, err := count(ctx, "wire: a renewal decoded", true); {
	case errors.Is(err, errNoTracing):
		t.Skipf("NOT TESTED: %v", err)
	case err != nil && !errors.Is(err, over):
		t.Errorf("got %v, want %v", err, over)
	}
}
