package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The README has the numbers of this very code.
func TestReadme(t *testing.T) {
	const readme = "../README.md"
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	_, has, _, ok := parts(string(text))
	if !ok {
		t.Fatal("README.md has no table of lines")
	}
	want, err := tableOf("..")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, has); diff != "" {
		t.Errorf("README.md is out of date: go run ./lines -docs README.md\n%s", diff)
	}
}

func TestCount(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		want   int
	}{
		"nothing":                 {"", 0},
		"a package":               {"package p\n", 1},
		"without a last line end": {"package p", 1},
		"blank lines":             {"\n\npackage p\n\n\n", 1},
		"comments":                {"// one\n/* two\nthree */\npackage p // and more\n", 1},
		"code after a comment":    {"package p\n/* long\n*/ var x int\n", 2},
		"a comment in quotes":     {"package p\nvar x = \"// none\"\n", 2},
		"text over lines":         {"package p\nvar x = `one\n\n// three\n`\n", 5},
		"a statement over lines":  {"package p\nvar x = 1 +\n\n\t2\n", 3},
		"two on a line":           {"package p; var x, y int; var z int\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := count("x.go", []byte(test.source))
			if err != nil || got != test.want {
				t.Errorf("%d lines, %v, want %d", got, err, test.want)
			}
		})
	}
	if _, err := count("x.go", []byte("package p\nvar x = `never ends")); err == nil {
		t.Error("what is no Go has been counted")
	}
}

// Tests are left out, and what is spoken over the wire is counted apart.
func TestTable(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"queue/queue.go":      "package queue\n\nvar x int\n",
		"queue/http.go":       "package queue\n",
		"queue/client.go":     "package queue\n",
		"queue/queue_test.go": "package queue\n",
		"queue/notes.txt":     "none\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := tableOf(dir)
	if diff := cmp.Diff(header+"| queue | Queue | 4 | 2 | 2 | 5,695 |\n", got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := tableOf(t.TempDir()); err == nil || !strings.Contains(err.Error(), "-dir") {
		t.Errorf("of nothing: %v", err)
	}
}

func TestReplaced(t *testing.T) {
	const text = "before\n" + beginMark + "old\n" + endMark + "\nafter\n"
	got, err := replaced(text, "new\n")
	if diff := cmp.Diff(strings.Replace(text, "old", "new", 1), got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := replaced("no marks\n"+endMark, "new\n"); err == nil || !strings.Contains(err.Error(), "<!-- lines -->") {
		t.Errorf("without marks: %v", err)
	}
}
