package leasehold_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
	"pgregory.net/rapid"
)

// wantRefusal checks the error for invalid input: it has kind ErrInvalid, contains the
// operation and the reason, and is short, printable and valid UTF-8 for any input.
func wantRefusal(t *testing.T, err error, op, why string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, want %q", op, why)
		return
	}
	if leasehold.KindOf(err) != leasehold.ErrInvalid || !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("%v: kind is %v, want invalid", err, leasehold.KindOf(err))
	}
	text := err.Error()
	if !strings.HasPrefix(text, op) || !strings.Contains(text, why) {
		t.Errorf("error is %q, want prefix %q and text %q", text, op, why)
	}
	if len(text) > 500 || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' }) {
		t.Errorf("error is too long or not printable: %d bytes, %.100q", len(text), text)
	}
	var e *leasehold.Error
	if !errors.As(err, &e) || !utf8.ValidString(e.Subject) || !utf8.ValidString(text) {
		t.Errorf("error is not UTF-8: %+q", text)
	}
}

func TestNamespaceValidate(t *testing.T) {
	for _, good := range []leasehold.Namespace{
		"presence", "a", "0", "a.b_c-d", "2-phase", leasehold.Namespace(strings.Repeat("n", leasehold.MaxNamespaceLen)),
	} {
		if err := good.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, test := range []struct {
		name leasehold.Namespace
		why  string
	}{
		{"", "have 0 bytes"},
		{leasehold.Namespace(strings.Repeat("n", leasehold.MaxNamespaceLen+1)), "have 65 bytes"},
		{"Presence", "'P' at position 0"},
		{".", "'.' at position 0"},
		{"..", "'.' at position 0"},
		{"-rf", "'-' at position 0"},
		{"_a", "'_' at position 0"},
		{"a/b", "'/' at position 1"},
		{"a b", "' ' at position 1"},
		{"a\x00", `'\x00' at position 1`},
		{"zoé", "'é' at position 2"},
		{"a\xff", "at position 1"},
		{leasehold.Namespace(strings.Repeat("é", 32)), "'é' at position 0"},
	} {
		wantRefusal(t, test.name.Validate(), "namespace", test.why)
	}
}

func TestOwnerIDValidate(t *testing.T) {
	for _, good := range []leasehold.OwnerID{
		"web-1", "10.0.0.1:8080", "[::1]:80", "rack 3, slot 4", "サーバー", "\uFFFD",
		leasehold.OwnerID(strings.Repeat("n", leasehold.MaxOwnerIDLen)),
	} {
		if err := good.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, test := range []struct {
		name leasehold.OwnerID
		why  string
	}{
		{"", "have 0"},
		{leasehold.OwnerID(strings.Repeat("n", leasehold.MaxOwnerIDLen+1)), "have 129"},
		{leasehold.OwnerID(strings.Repeat("東", 43)), "have 129"},
		{"a\xffb", "byte 0xff at position 1"},
		{"abc\xe6\x9d", "byte 0xe6 at position 3"},
		{"a\nb", "U+000A at position 1"},
		{"a\x00", "U+0000 at position 1"},
		{"a\x7f", "U+007F at position 1"},
		{"\u009b2J", "U+009B at position 0"},      // CSI: clears some terminals
		{"nimda\u202e", "U+202E at position 5"},   // right-to-left override
		{"web\u200b1", "U+200B at position 3"},    // zero-width space
		{"a\u2028b", "U+2028 at position 1"},      // line separator
		{"a\u00a0b", "U+00A0 at position 1"},      // no-break space
		{"\ufeffweb-1", "U+FEFF at position 0"},   // byte order mark
		{"a\U000e0001b", "U+E0001 at position 1"}, // invisible tag
	} {
		wantRefusal(t, test.name.Validate(), "owner id", test.why)
	}
}

func TestValidateAnyName(t *testing.T) {
	name := rapid.OneOf(
		rapid.String(),
		rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) }),
		rapid.StringMatching(`[a-z0-9][-a-z0-9._]{0,70}`),
	)
	rapid.Check(t, func(rt *rapid.T) {
		s := name.Draw(rt, "name")
		if err := leasehold.Namespace(s).Validate(); err != nil {
			wantRefusal(t, err, "namespace", "")
		}
		err := leasehold.OwnerID(s).Validate()
		if err != nil {
			wantRefusal(t, err, "owner id", "")
		}
		if err == nil && (s == "" || len(s) > leasehold.MaxOwnerIDLen || !utf8.ValidString(s)) {
			rt.Fatalf("accepted %q", s)
		}
	})
}

func TestNewSession(t *testing.T) {
	a, err := leasehold.NewSession(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b, err := leasehold.NewSession(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if a == b || a.IsZero() || b.IsZero() {
		t.Errorf("sessions %v and %v", a, b)
	}
}

func TestNewSessionReadsSixteenBytes(t *testing.T) {
	random := bytes.NewReader([]byte("0123456789abcdefgh"))
	s, err := leasehold.NewSession(random)
	if err != nil || string(s[:]) != "0123456789abcdef" || random.Len() != 2 {
		t.Errorf("session %q, %v, %d bytes left", s[:], err, random.Len())
	}
}

// Two processes with the zero session of a broken source would be one owner to the manager.
func TestNewSessionRejectsBrokenSources(t *testing.T) {
	for name, test := range map[string]struct {
		random io.Reader
		cause  error
	}{
		"empty": {bytes.NewReader(nil), io.EOF},
		"short": {bytes.NewReader(make([]byte, 15)), io.ErrUnexpectedEOF},
		"zeros": {zeros{}, leasehold.ErrUnavailable},
	} {
		s, err := leasehold.NewSession(test.random)
		if !s.IsZero() || !errors.Is(err, test.cause) || leasehold.KindOf(err) != leasehold.ErrUnavailable {
			t.Errorf("%s: %v, %v; want an error with cause %v", name, s, err, test.cause)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestSessionString(t *testing.T) {
	s := leasehold.Session{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 15: 0xff}
	if got, want := s.String(), "0123456789abcdef00000000000000ff"; got != want {
		t.Errorf("String is %q, want %q", got, want)
	}
	if got, want := s.Short(), "01234567"; got != want {
		t.Errorf("Short is %q, want %q", got, want)
	}
	if s.IsZero() || !(leasehold.Session{}).IsZero() {
		t.Error("IsZero is wrong")
	}
}

func TestParseSession(t *testing.T) {
	want := leasehold.Session{0xab, 15: 0xcd}
	for _, text := range []string{"ab0000000000000000000000000000cd", "AB0000000000000000000000000000Cd"} {
		if got, err := leasehold.ParseSession(text); err != nil || got != want {
			t.Errorf("ParseSession(%q) = %v, %v", text, got, err)
		}
	}
	if got, err := leasehold.ParseSession(strings.Repeat("0", 32)); err != nil || !got.IsZero() {
		t.Errorf("ParseSession of zeros = %v, %v", got, err)
	}
}

func TestParseSessionRefuses(t *testing.T) {
	for _, test := range []struct{ text, why string }{
		{"", "have 0 bytes"},
		{"01234567", "have 8 bytes"},
		{strings.Repeat("0", 31), "have 31 bytes"},
		{strings.Repeat("0", 33), "have 33 bytes"},
		{strings.Repeat("0", 31) + "g", "'g' at position 31"},
		{strings.Repeat("é", 16), "'é' at position 0"},
		{"01234567-89ab-cdef-0123-456789ab", "'-' at position 8"},
		{strings.Repeat("\xff", 1<<20), "have 1048576 bytes"},
	} {
		_, err := leasehold.ParseSession(test.text)
		wantRefusal(t, err, "parse session", test.why)
	}
}

func FuzzParseSession(f *testing.F) {
	for _, seed := range []string{"", strings.Repeat("0", 32), "0123456789abcdefFEDCBA9876543210", strings.Repeat("é", 16)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := leasehold.ParseSession(text)
		if err != nil {
			wantRefusal(t, err, "parse session", "")
			return
		}
		if s.String() != strings.ToLower(text) || !strings.HasPrefix(s.String(), s.Short()) {
			t.Errorf("ParseSession(%q).String() = %q, Short %q", text, s.String(), s.Short())
		}
		if again, err := leasehold.ParseSession(s.String()); err != nil || again != s {
			t.Errorf("ParseSession(%q) = %v, %v", s.String(), again, err)
		}
	})
}

func TestLeaseString(t *testing.T) {
	lease := leasehold.Lease{Range: leasehold.Range{Start: 0x40}, Generation: 7}
	if got, want := lease.String(), "0000000000000040-end@7"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
