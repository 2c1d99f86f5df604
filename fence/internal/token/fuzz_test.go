package token_test

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
)

// FuzzParse: a text is a generation only if Format returns it, and texts sort like generations,
// because databases compare texts.
func FuzzParse(f *testing.F) {
	f.Add("00000000000000000005", "00000000000000000006")
	f.Add("18446744073709551616", "99999999999999999999") // too large
	f.Add("+0000000000000000005", " 0000000000000000005")
	f.Add("", "5")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, ok := token.Parse(a)
		if ok && token.Format(x) != a {
			t.Fatalf("%q is parsed as %d, which is formatted as %q", a, x, token.Format(x))
		}
		y, also := token.Parse(b)
		if ok && also && strings.Compare(a, b) != compare(x, y) {
			t.Fatalf("%q and %q do not sort like %d and %d", a, b, x, y)
		}
	})
}

func compare(x, y leasehold.Generation) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// FuzzValidate: a valid resource fits every database, and the error of an invalid one is printable.
func FuzzValidate(f *testing.F) {
	f.Add("resource", uint64(5))
	f.Add("a\x00b", uint64(5))
	f.Add("\xff", uint64(0))
	f.Add(strings.Repeat("é", 600), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, resource string, generation uint64) {
		err := token.Validate(resource, leasehold.Generation(generation))
		switch {
		case err == nil:
			if resource == "" || len(resource) > token.MaxResourceLen || !utf8.ValidString(resource) || strings.Contains(resource, "\x00") || generation == 0 || generation > math.MaxInt64 {
				t.Fatalf("%q, %d is accepted", resource, generation)
			}
		case leasehold.KindOf(err) != leasehold.ErrInvalid || !utf8.ValidString(err.Error()):
			t.Fatalf("%q", err)
		}
	})
}
