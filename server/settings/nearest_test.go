package settings

import (
	"slices"
	"testing"
)

func TestEditDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"abc", "abc", 0},
		{"kitten", "sitting", 3},
		{"sedes", "seeds", 1},
		{"wiat", "wait", 1},
		{"ca", "abc", 3}, // no character is edited twice
		{"seed", "seeds", 1},
		{"flaw", "lawn", 2},
	} {
		if got := editDistance(test.a, test.b); got != test.want {
			t.Errorf("from %q to %q: got %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"authority-ignored", "drift-ignored", "lookup-goes-back", "takeover-ignores-drift"}
	for _, test := range []struct {
		mistyped string
		n        int
		want     []string
	}{
		{"drift-ignord", 1, []string{"drift-ignored"}},
		{"lookup-gose-back", 1, []string{"lookup-goes-back"}},
		{"drift", 2, []string{"drift-ignored", "takeover-ignores-drift"}}, // both contain it
		{"lookup-gose-backk", 3, []string{"lookup-goes-back"}},            // the others are far off
		{"server-1", 10, nil},
		{"x", 10, nil},
		{"dr", 10, nil}, // contained in two names, but too short
	} {
		got := Nearest(test.mistyped, names, test.n)
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.mistyped, got, test.want)
		}
	}
	if got := Nearest("x", nil, 3); len(got) != 0 {
		t.Errorf("without names, got %q", got)
	}
}
