package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
)

// FuzzBytes: a byte count is parsed, or rejected.
func FuzzBytes(f *testing.F) {
	for _, text := range []string{"1048576", "512MiB", "8GiB", "9007199254740992KiB", "-1", "+1", "1 GiB", "GiB", "", "0x10", "1GB", "9223372036854775807"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseBytes(text)
		if err != nil {
			return
		}
		if digits := strings.TrimRight(text, "KMGiB"); n < 0 || strings.Trim(digits, "0123456789") != "" {
			t.Fatalf("%q is parsed as %d", text, n)
		}
	})
}

// FuzzKeyArgument: a key argument is a hexadecimal key, or a name whose hash is the key.
func FuzzKeyArgument(f *testing.F) {
	for _, text := range []string{"alice", "0xff", "0X", "0x00000000000000001", "", "0xzz"} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, hex bool) {
		k := AddKeyFlag(&cobra.Command{})
		k.hex = hex
		got, err := k.Parse(text)
		switch {
		case err != nil:
		case got.Name != "" && got.Key != leasehold.KeyOf(text):
			t.Fatalf("%q is parsed as a name with key %v", text, got.Key)
		case hex && !strings.HasSuffix(got.Key.String(), strings.TrimPrefix(strings.ToLower(text), "0x")):
			t.Fatalf("%q is parsed as key %v", text, got.Key)
		}
	})
}
