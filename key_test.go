package leasehold_test

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"pgregory.net/rapid"
)

// published are values of XXH64 with seed 0 from other publications.
var published = map[string]leasehold.Key{
	"":    0xef46db3751d8e999,
	"a":   0xd24ec4f1a98c6e5b,
	"abc": 0x44bc2cf5ad770999,
}

func TestKeyOfMatchesPublishedValues(t *testing.T) {
	for name, want := range published {
		if got := leasehold.KeyOf(name); got != want {
			t.Errorf("KeyOf(%q) = %v, want %v", name, got, want)
		}
		if got := leasehold.Key(xxh64([]byte(name))); got != want {
			t.Errorf("the reference XXH64 of %q is %v, want %v", name, got, want)
		}
	}
}

// TestKeyHashVectors parses testdata/keyhash.tsv as an implementation in another language would.
func TestKeyHashVectors(t *testing.T) {
	vectors := readKeyHashVectors(t)
	if len(vectors) < 40 {
		t.Errorf("only %d vectors", len(vectors))
	}
	for name, want := range published {
		if vectors[name] != want {
			t.Errorf("vector of %q is %v, published is %v", name, vectors[name], want)
		}
	}
	for name, want := range vectors {
		if got := leasehold.Key(xxh64([]byte(name))); got != want {
			t.Errorf("vector of %x is %v, the reference XXH64 is %v", name, want, got)
		}
		if got := leasehold.KeyOf(name); got != want {
			t.Errorf("KeyOf(%x) = %v, the vector is %v", name, got, want)
		}
	}
}

func readKeyHashVectors(t *testing.T) map[string]leasehold.Key {
	t.Helper()
	text, err := os.ReadFile("testdata/keyhash.tsv")
	if err != nil {
		t.Fatal(err)
	}
	vectors := make(map[string]leasehold.Key)
	for number, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		input, output, found := strings.Cut(line, "\t")
		if !found {
			t.Fatalf("line %d: no tab", number+1)
		}
		name, err := hex.DecodeString(input)
		if err != nil {
			t.Fatalf("line %d: %v", number+1, err)
		}
		key, err := leasehold.ParseKey(output)
		if err != nil {
			t.Fatalf("line %d: %v", number+1, err)
		}
		if _, twice := vectors[string(name)]; twice {
			t.Fatalf("line %d: duplicate %x", number+1, name)
		}
		vectors[string(name)] = key
	}
	return vectors
}

func TestKeyOfMatchesSpecification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "name")
		if got, want := leasehold.KeyOf(string(name)), leasehold.Key(xxh64(name)); got != want {
			t.Fatalf("KeyOf(%x) = %v, want %v", name, got, want)
		}
	})
}

func TestParseKey(t *testing.T) {
	for text, want := range map[string]leasehold.Key{
		"0000000000000000": 0,
		"0000000000000001": 1,
		"ffffffffffffffff": 1<<64 - 1,
		"0123456789abcdef": 0x0123456789abcdef,
		"0123456789ABCDEF": 0x0123456789abcdef,
	} {
		got, err := leasehold.ParseKey(text)
		if err != nil || got != want {
			t.Errorf("ParseKey(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	for _, test := range []struct{ text, why string }{
		{"", "have 0 bytes"},
		{"1", "have 1 bytes"},
		{"00000000000000000", "have 17 bytes"},
		{"0x00000000000000", "'x' at position 1"},
		{"+000000000000001", "'+' at position 0"},
		{"-000000000000001", "'-' at position 0"},
		{"0000_0000_0000_0", "'_' at position 4"},
		{"000000000000000g", "'g' at position 15"},
		{" 00000000000000 ", "' ' at position 0"},
		{"000000000000000\n", `'\n' at position 15`},
		{"éééééééé", "'é' at position 0"},
		{"000000000000000\xff", "at position 15"},
		{strings.Repeat("0", 1<<20), "have 1048576 bytes"},
	} {
		_, err := leasehold.ParseKey(test.text)
		wantRefusal(t, err, "parse key", test.why)
	}
}

func TestParseKeyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawKey(t, "key")
		got, err := leasehold.ParseKey(want.String())
		if err != nil || got != want {
			t.Fatalf("ParseKey(%q) = %v, %v", want.String(), got, err)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"", "0000000000000000", "FFFFffffFFFFffff", "0x00000000000000", "日本語日本語"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := leasehold.ParseKey(text)
		if err != nil {
			wantRefusal(t, err, "parse key", "")
			return
		}
		if key.String() != strings.ToLower(text) {
			t.Errorf("ParseKey(%q).String() = %q", text, key.String())
		}
	})
}

// drawKey draws keys, many of them at or next to the ends of the key space.
func drawKey(t *rapid.T, label string) leasehold.Key {
	return leasehold.Key(rapid.OneOf(
		rapid.SampledFrom([]uint64{0, 1, 2, 1 << 63, 1<<64 - 2, 1<<64 - 1}),
		rapid.Uint64Range(0, 16),
		rapid.Uint64(),
	).Draw(t, label))
}
