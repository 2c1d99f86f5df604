package document_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/examples/internal/document"
)

func TestBlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.md")
	if err := os.WriteFile(path, []byte("One\n```go\na\n\nb\n```\ntwo\n```sh\nc\n```\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []document.Block{{"One\n", "go", "a\n\nb\n"}, {"\ntwo\n", "sh", "c\n"}, {Text: "\nthree\n"}}
	if diff := cmp.Diff(want, document.Blocks(t, path, 20)); diff != "" {
		t.Error(diff)
	}
	document.WantParts(t, want, path)
}
