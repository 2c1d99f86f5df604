package explorer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestTrail(t *testing.T) {
	var last *trail
	want := []uint16{0, 3, 0, 0, 1}
	for _, c := range want {
		last = &trail{last, c}
	}
	text := last.text()
	if text != "5:1=3,4=1" {
		t.Errorf("got %q", text)
	}
	if got, err := parseTrail(text); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestFingerprints(t *testing.T) {
	var f fingerprints
	random := rand.New(rand.NewPCG(1, 1))
	model := map[uint64]uint8{}
	for range 20_000 {
		key, v := random.Uint64()>>uint(random.IntN(2)*50), uint8(random.IntN(4))
		before, known := model[key]
		k, raised := f.raise(key, v)
		if k != known || raised != (!known || v > before) {
			t.Fatalf("%d: known %t, raised %t", key, k, raised)
		}
		if raised {
			model[key] = v
		}
	}
	if f.len() != uint64(len(model)) {
		t.Errorf("%d fingerprints, want %d", f.len(), len(model))
	}
}

// A walk goes right, or as a detour up. Its state is broken at one position.
type walk struct {
	x, y, up int
	broken   [2]int
}

func (w walk) Hash() uint64   { return uint64(w.x)<<8 | uint64(w.y) | 1<<16 }
func (w walk) Budget() uint64 { return uint64(w.up) }

func (w walk) Broken() *Violation {
	if [2]int{w.x, w.y} != w.broken {
		return nil
	}
	return &Violation{Invariant: "safe", Text: "it is not"}
}

func (w walk) Each(visit func(walk, func() string)) {
	right, up := w, w
	right.x++
	visit(right, func() string { return "right" })
	if up.y, up.up = w.y+1, w.up-1; w.up > 0 {
		visit(up, func() string { return "up" })
	}
}

func (w walk) Line(step string) string { return fmt.Sprintf("%s to %d,%d", step, w.x, w.y) }
func (w walk) Figure(i int) uint64     { return []uint64{uint64(w.x), 1, 1}[i] }

// plane is the scenario of a walk: the broken position.
type plane [2]int

func (plane) Name() string            { return "plane" }
func (plane) Steps() int              { return 4 }
func (p plane) Begin() (walk, error)  { return walk{up: 2, broken: p}, nil }
func (plane) Worker() func(walk) walk { return func(w walk) walk { return w } }
func (plane) Figures() []Figure {
	return []Figure{{Key: "farthest", Text: "up to %d"}, {Key: "places", Text: "%d places", Of: SumOfStates}, {Key: "ways", Text: "%d paths", Of: SumOfSteps}}
}

// All positions within four steps, of which two may go up, are visited once. A position that is reached again
// with fewer remaining steps is not explored again.
func TestExplore(t *testing.T) {
	for _, workers := range []int{1, 3} {
		r, err := Explore(t.Context(), plane{-1, -1}, Options{Workers: workers})
		if err != nil || r.Violated != nil {
			t.Fatal(r, err)
		}
		if r.States != 12 || r.Figure("places") != 12 || r.Figure("farthest") != 4 || r.Deepest != 4 || r.Figure("ways") != r.Steps || r.Steps < 14 {
			t.Errorf("%d workers: %v", workers, r)
		}
	}
}

func TestViolationIsReplayed(t *testing.T) {
	r, err := Explore(t.Context(), plane{1, 2}, Options{})
	if err != nil || r.Violated == nil {
		t.Fatal(r, err)
	}
	v := r.Violated
	again, err := Replay(plane{1, 2}, v.Replay)
	if err != nil || v.String() != "safe violated: it is not" || len(v.Path) != 3 || !slices.Equal(again.Path, v.Path) || !strings.HasSuffix(v.Path[2], "to 1,2") {
		t.Errorf("%v after %q, and again %v, %v", v, v.Path, again, err)
	}
	if _, err := Replay(plane{1, 1}, v.Replay); err == nil || !strings.Contains(err.Error(), "there is no violation") {
		t.Errorf("without a violation the same path leads to %v", err)
	}
	if _, err := Replay(plane{1, 1}, "1:0=2"); err == nil || !strings.Contains(err.Error(), "2 choices") {
		t.Errorf("an invalid choice: %v", err)
	}
}
