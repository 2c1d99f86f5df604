package namespacecmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzSlots: a file of slots is refused, or has a key and an owner for each.
func FuzzSlots(f *testing.F) {
	for _, text := range []string{"0000000000000000 a\n8000000000000000 b\n", "# none\n", "0 a", "0000000000000000\n", "\xff\xfe", "0000000000000000 a b  c\r\n", strings.Repeat("x", 70_000)} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "slots")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		slots, err := readSlots(path)
		if err == nil && (len(slots) == 0 || len(slots) > len(text)/16) {
			t.Fatalf("%d slots in %d bytes", len(slots), len(text))
		}
	})
}
