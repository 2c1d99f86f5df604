package engine_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A timeline behaves like a sorted list.
func TestTimelineIsASortedList(t *testing.T) {
	type thing struct {
		at int64
		id int
	}
	rapid.Check(t, func(t *rapid.T) {
		var line engine.Timeline[int]
		var model []thing
		sort := func() {
			slices.SortFunc(model, func(a, b thing) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
		}
		for id := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0: // drop every third, and move some to an earlier time
				early := rapid.Int64Range(0, 5).Draw(t, "early")
				line.Revise(func(at int64, thing *int) (int64, bool) { return min(at, early), *thing%3 != 0 })
				model = slices.DeleteFunc(model, func(m thing) bool { return m.id%3 == 0 })
				for i := range model {
					model[i].at = min(model[i].at, early)
				}
				sort()
			case 1, 2, 3:
				if len(model) == 0 {
					continue
				}
				at, got := line.Next()
				if want := model[0]; at != want.at || got != want.id {
					t.Fatalf("%d at %d, want %d at %d", got, at, want.id, want.at)
				}
				model = model[1:]
			default:
				at := rapid.Int64Range(0, 8).Draw(t, "at")
				line.Add(at, id)
				model = append(model, thing{at, id})
				sort()
			}
			if line.Len() != len(model) {
				t.Fatalf("%d things, want %d", line.Len(), len(model))
			}
		}
	})
}
