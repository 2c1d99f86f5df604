package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadSecret(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		text string
		mode os.FileMode
		want string // of the secret
		err  string
	}{
		"a line":              {"s3cret\n", 0o600, "s3cret", ""},
		"read-only":           {"s3cret", 0o400, "s3cret", ""},
		"as Kubernetes does":  {"s3cret\r\n", 0o640, "s3cret", ""},
		"others can read it":  {"s3cret", 0o604, "", "mode 0604"},
		"a group can change":  {"s3cret", 0o660, "", "mode 0660"},
		"empty":               {"\n", 0o600, "", "want one line"},
		"two lines":           {"s3cret\nmore\n", 0o600, "", "want one line"},
		"something else":      {strings.Repeat("s3cret", 1000), 0o600, "", "more than 4096 bytes"},
		"white space matters": {" s3cret ", 0o600, " s3cret ", ""},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, test.mode); err != nil {
			t.Fatal(err)
		}
		got, err := ReadSecret(path)
		if got.Reveal() != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %q, %v", name, got.Reveal(), err)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error contains the secret: %v", name, err)
		}
	}
}
