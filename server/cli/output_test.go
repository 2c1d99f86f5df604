package cli

import (
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/server/console"
)

func TestBrief(t *testing.T) {
	for _, test := range []struct {
		d    time.Duration
		want string
	}{
		{-time.Second, "0s"},
		{0, "0s"},
		{350123 * time.Microsecond, "350ms"},
		{2500 * time.Millisecond, "2.5s"},
		{10 * time.Second, "10s"},
		{time.Minute, "1m"},
		{200 * time.Second, "3m20s"},
		{10 * time.Minute, "10m"},
		{2*time.Hour + 13*time.Minute + 5*time.Second, "2h13m"},
		{10 * time.Hour, "10h"},
		{48 * time.Hour, "2d"},
		{122*time.Hour + 10*time.Minute, "5d2h"},
	} {
		if got := console.Brief(test.d); got != test.want {
			t.Errorf("%v: got %s, want %s", test.d, got, test.want)
		}
	}
}

func TestTableTextLinesUp(t *testing.T) {
	got := console.Table([]console.Column{console.Left("NAME"), console.Number("COUNT"), console.Left("STATE")}, [][]string{
		{"a", "1", console.Good("yes")},
		{"größer", "1,000", console.Bad("no")},
		{"東京", "20", "-"},
	})
	want := `NAME    COUNT  STATE
a           1  yes
größer  1,000  no
東京       20  -
`
	if diff := cmp.Diff(want, ansi.Strip(got)); diff != "" {
		t.Error(diff)
	}
}

func TestShownCannotMoveTheCursor(t *testing.T) {
	if got, want := console.Shown("a\x1b[2Jb\nc\u202ed ü"), "a\uFFFD[2Jb\uFFFDc\uFFFDd ü"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
