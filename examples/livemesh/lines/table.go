package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A service is a row of the table.
type service struct {
	dir   string
	paper string // its name there
	lines int    // of C#, in table 1 of the paper; 0 if it has none
}

func services() []service {
	return []service{
		{"documents", "Sectioned-Document", 5788},
		{"pubsub", "Publish-Subscribe", 4164},
		{"queue", "Queue", 5695},
		{"feed", "RSS-Processor", 5019},
		{"im", "the test application of section 7", 0},
		{"jsonhttp", "what all of them share", 0},
	}
}

const header = `| package | in the paper | lines of Go | the service | HTTP and client | lines of C# in the paper |
|---|---|---:|---:|---:|---:|
`

// tableOf counts the services in a directory. One that is not there has no row.
func tableOf(dir string) (string, error) {
	var b strings.Builder
	b.WriteString(header)
	rows := 0
	for _, s := range services() {
		if _, err := os.Stat(filepath.Join(dir, s.dir)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		t, err := countDir(filepath.Join(dir, s.dir))
		if err != nil {
			return "", err
		}
		theirs := ""
		if s.lines > 0 {
			theirs = grouped(s.lines)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", s.dir, s.paper, grouped(t.total()), grouped(t.service), grouped(t.wire), theirs)
		rows++
	}
	if rows == 0 {
		return "", fmt.Errorf("there are no services in %s: run it in examples/livemesh, or say where they are with -dir", dir)
	}
	return b.String(), nil
}

// grouped writes a number with commas, as the paper does.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// The table is between these in a document.
const (
	beginMark = "<!-- lines -->\n"
	endMark   = "<!-- end of lines -->"
)

// parts returns what is before, between and after the marks.
func parts(text string) (before, table, after string, ok bool) {
	before, rest, begins := strings.Cut(text, beginMark)
	table, after, ends := strings.Cut(rest, endMark)
	return before, table, after, begins && ends
}

// replaced returns a document with another table.
func replaced(text, table string) (string, error) {
	before, _, after, ok := parts(text)
	if !ok {
		return "", fmt.Errorf("there is no place for the table: want a line %q, and %q after it", strings.TrimSpace(beginMark), endMark)
	}
	return before + beginMark + table + endMark + after, nil
}
