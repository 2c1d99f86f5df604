package feed

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestMergeOrder: the result of merging does not depend on order, grouping and duplicates.
func TestMergeOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Activity {
			n := rapid.IntRange(0, 30).Draw(t, "n")
			return Activity{ID: fmt.Sprint(n), Title: "x", At: now().Add(time.Duration(n%7) * time.Minute)}
		}), 0, 30).Draw(t, "activities")
		room := rapid.IntRange(1, 20).Draw(t, "room")
		want := merge(nil, all, room)
		var got []Activity
		order := rapid.Permutation(all).Draw(t, "order")
		for len(order) > 0 {
			n := rapid.IntRange(1, len(order)).Draw(t, "together")
			before := got
			got = merge(before, order[:n], room)
			if again := merge(got, before, room); !cmp.Equal(again, got) {
				t.Errorf("a dropped activity reappears: %v", again)
			}
			order = order[n:]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
