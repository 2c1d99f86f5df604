package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKept: a kept file has the newest part of what was written, and is bounded.
func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var all strings.Builder
	for _, piece := range []string{"a", "bb", "ccc", "dddd", "eeeee", "ffffff"} {
		k, err := keepIn(path, 6) // by another process each time
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := k.Write([]byte(piece)); err != nil {
				t.Fatal(err)
			}
			all.WriteString(piece)
		}
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var have string
	for _, name := range []string{path + older, path} {
		text, err := os.ReadFile(name)
		if err != nil || len(text) > 11 {
			t.Errorf("%q, %v", text, err)
		}
		have += string(text)
	}
	if !strings.HasSuffix(all.String(), have) || len(have) < 6 {
		t.Errorf("%q is left of %q", have, all.String())
	}
}
