package token_test

import (
	"cmp"
	"math"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
	"pgregory.net/rapid"
)

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		resource   string
		generation leasehold.Generation
		want       string // in the error; "": valid
	}{
		"the least":          {"a", 1, ""},
		"the most":           {strings.Repeat("x", token.MaxResourceLen), math.MaxInt64, ""},
		"no resource":        {"", 1, "1 to 1024 bytes"},
		"a long one":         {strings.Repeat("x", token.MaxResourceLen+1), 1, "not 1025"},
		"not text":           {"a\xffb", 1, "UTF-8"},
		"a zero byte":        {"a\x00b", 1, "zero byte"},
		"no lease":           {"a", 0, "0 is not the generation"},
		"more than 63 bits":  {"a", math.MaxInt64 + 1, "9223372036854775808 is not"},
		"all bits of a word": {"a", math.MaxUint64, "18446744073709551615 is not"},
	} {
		err := token.Validate(c.resource, c.generation)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want an invalid one with %q", name, err, c.want)
		case err != nil && len(err.Error()) > 200:
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

func TestFormatKeepsTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := leasehold.Generation(rapid.Uint64().Draw(t, "a"))
		b := leasehold.Generation(rapid.Uint64().Draw(t, "b"))
		if got, want := strings.Compare(token.Format(a), token.Format(b)), cmp.Compare(a, b); got != want {
			t.Fatalf("texts compare as %d, generations as %d", got, want)
		}
		if back, ok := token.Parse(token.Format(a)); !ok || back != a {
			t.Fatalf("%d was parsed as %d, %t", a, back, ok)
		}
	})
}

func TestParseRejects(t *testing.T) {
	for _, text := range []string{
		"", "1", "0000000000000000000", "000000000000000000001", "-0000000000000000001",
		"+0000000000000000001", "0000000000000000000x", "99999999999999999999", " 0000000000000000001",
	} {
		if g, ok := token.Parse(text); ok {
			t.Errorf("%q was parsed as %d", text, g)
		}
	}
}
