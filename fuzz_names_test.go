package leasehold_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
)

// A valid name, and the error for an invalid name, can be printed on any terminal and sent in any message.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"presence", "a.b-c_d", "Ω", "a b", "\x1b[31mred", "a\u202eb", "\xff", "a\xffb", "\ufffd", "", "..", "a/b", "N", strings.Repeat("x", 129), strings.Repeat("é", 64)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for kind, err := range map[string]error{"namespace": leasehold.Namespace(name).Validate(), "owner": leasehold.OwnerID(name).Validate()} {
			switch {
			case err != nil && (leasehold.KindOf(err) != leasehold.ErrInvalid || !utf8.ValidString(err.Error()) || len(err.Error()) > 1000):
				t.Fatalf("%s %q: %q", kind, name, err)
			case err == nil && (name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })):
				t.Fatalf("%s %q is accepted", kind, name)
			case err == nil && kind == "namespace" && strings.ContainsAny(name, "/\\ \"'"):
				t.Fatalf("%s %q is accepted and could escape its path in the store", kind, name)
			}
		}
	})
}
