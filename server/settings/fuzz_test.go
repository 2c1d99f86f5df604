package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/settings"
)

// checkFill fills settings from a source. Either the source is rejected with ErrInvalid, or the
// output of Describe gives the same settings.
func checkFill(t *testing.T, src settings.Source, scratch string) {
	var o options
	flags := o.flags()
	if err := settings.Fill(flags, src); err != nil {
		if k := leasehold.KindOf(err); k != leasehold.ErrInvalid && !strings.Contains(err.Error(), "\n") {
			t.Fatalf("kind %v: %v", k, err)
		}
		return
	}
	text, err := settings.Describe(flags)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(scratch, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var again options
	if err := settings.Fill(again.flags(), settings.Source{File: scratch, Known: known()}); err != nil {
		t.Fatalf("the output of Describe is rejected: %v\n%s", err, text)
	}
	if diff := cmp.Diff(o, again, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the output of Describe gives other settings (-want +got):\n%s\n%s", diff, text)
	}
}

// FuzzFile checks arbitrary configuration files.
func FuzzFile(f *testing.F) {
	for _, text := range []string{
		"name: x\nmanagers: [a:1, 'b:2']\ntimeout: 7s\ndrift: 1.5\nmost: 3\njson: true\n",
		"a: &a [x, x]\nname: *a\n", "<<: {name: x}\n", "? [name]\n: x\n", "name: !!binary aGk=\n", "---\n...\n---\n", "name: \"\\0\"\n",
		"managers:\n- 'a,b'\n- \"c\\\"d\"\n", "%YAML 1.1\n---\nname: x\n", "name: |\n  a\n  b\n", "\xff\xfe", "# nothing\n",
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(dir, "in.yaml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		checkFill(t, settings.Source{File: path, Known: known()}, filepath.Join(dir, "again.yaml"))
	})
}

// FuzzEnvironment checks arbitrary environments.
func FuzzEnvironment(f *testing.F) {
	for _, line := range []string{
		"LEASEHOLD_NAME=x", "LEASEHOLD_MANAGERS=a:1,\"b,c\"", "LEASEHOLD_TIMEOUT=5", "LEASEHOLD_=x", "LEASEHOLD_PORT=tcp://10.0.0.1:7400",
		"LEASEHOLD_NAME", "=LEASEHOLD_NAME=x", "LEASEHOLD_NAME=\xff\n", "LEASEHOLD_DRIFT=NaN", "LEASEHOLD_JSON=T", "LEASEHOLD_MOST=0x10",
	} {
		f.Add(line)
	}
	scratch := filepath.Join(f.TempDir(), "again.yaml")
	f.Fuzz(func(t *testing.T, line string) {
		if strings.HasPrefix(line, "LEASEHOLD_CONFIG") {
			return // it names a file to read
		}
		if !utf8.ValidString(line) {
			return // YAML cannot represent every file name
		}
		checkFill(t, settings.Source{Environ: []string{line}, Known: known()}, scratch)
	})
}
