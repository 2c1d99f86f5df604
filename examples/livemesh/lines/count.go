package main

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// A tally is how many lines of code a service has.
type tally struct {
	service int // what it does
	wire    int // its HTTP API, and what runs at its callers
}

func (t tally) total() int { return t.service + t.wire }

// countDir counts the lines of a package.
func countDir(dir string) (tally, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return tally{}, err
	}
	var t tally
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return tally{}, err
		}
		n, err := count(name, source)
		if err != nil {
			return tally{}, err
		}
		if wire(name) {
			t.wire += n
		} else {
			t.service += n
		}
	}
	return t, nil
}

// wire reports whether a file is about what is spoken over the wire, by its name.
func wire(name string) bool {
	for _, prefix := range []string{"http", "client", "publisher"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// count returns on how many lines of a source there is code. Text in quotes that goes over
// several lines is code on each.
func count(name string, source []byte) (int, error) {
	var wrong scanner.ErrorList
	files := token.NewFileSet()
	file := files.AddFile(name, -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, wrong.Add, 0) // which leaves comments out
	lines := make(map[int]bool)
	for {
		at, what, text := s.Scan()
		if what == token.EOF {
			return len(lines), wrong.Err()
		}
		if what == token.SEMICOLON && text == "\n" {
			continue // the scanner's, and in no source
		}
		first := file.Line(at)
		for i := range 1 + strings.Count(text, "\n") {
			lines[first+i] = true
		}
	}
}
