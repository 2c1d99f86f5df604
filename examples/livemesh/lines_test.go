package main

import (
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateLines = flag.Bool("update", false, "write the table of lines into README.md")

// The table is between these in README.md.
const (
	linesBegin = "<!-- lines -->\n"
	linesEnd   = "<!-- end of lines -->"
)

// TestLines: the README has the line counts of this code, beside those of table 1 of the PRS
// paper. Blank lines, comments and tests do not count.
func TestLines(t *testing.T) {
	var table strings.Builder
	table.WriteString("| package | in the paper | lines of Go | lines of C# in the paper |\n|---|---|---:|---:|\n")
	for _, s := range []struct{ dir, paper, lines string }{
		{"documents", "Sectioned-Document", "5,788"},
		{"pubsub", "Publish-Subscribe", "4,164"},
		{"queue", "Queue", "5,695"},
		{"feed", "RSS-Processor", "5,019"},
		{"im", "the test application of section 7", ""},
		{"jsonhttp", "what all of them share", ""},
	} {
		fmt.Fprintf(&table, "| %s | %s | %d | %s |\n", s.dir, s.paper, countDir(t, s.dir), s.lines)
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), linesBegin)
	has, after, ends := strings.Cut(rest, linesEnd)
	if !begins || !ends {
		t.Fatal("README.md has no table of lines")
	}
	if *updateLines {
		has = table.String()
		if err := os.WriteFile("README.md", []byte(before+linesBegin+has+linesEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(table.String(), has); diff != "" {
		t.Errorf("README.md is out of date: go test -run Lines . -args -update\n%s", diff)
	}
}

// countDir returns the lines of a package.
func countDir(t *testing.T, dir string) (lines int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += countLines(source)
	}
	return lines
}

// countLines returns the number of lines of a source with code.
func countLines(source []byte) int {
	file := token.NewFileSet().AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0) // without comments
	lines := make(map[int]bool)
	for {
		at, what, text := s.Scan()
		if what == token.EOF {
			return len(lines)
		}
		if what == token.SEMICOLON && text == "\n" {
			continue // inserted by the scanner
		}
		first := file.Line(at)
		for i := range 1 + strings.Count(text, "\n") {
			lines[first+i] = true
		}
	}
}

func TestCountLines(t *testing.T) {
	for source, want := range map[string]int{
		"":                    0,
		"\n\npackage p\n\n\n": 1,
		"// one\n/* two\nthree */\npackage p // and more\n": 1,
		"package p\n/* long\n*/ var x int\n":                2,
		"package p\nvar x = \"// none\"\n":                  2,
		"package p\nvar x = `one\n\n// three\n`\n":          5,
		"package p\nvar x = 1 +\n\n\t2\n":                   3,
		"package p; var x, y int; var z int\n":              1,
	} {
		if got := countLines([]byte(source)); got != want {
			t.Errorf("%q: %d lines, want %d", source, got, want)
		}
	}
}
