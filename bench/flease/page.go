package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writePage writes the tables of docs/flease.md and its plots anew. What people
// wrote around them stays, and so do the parts that were not measured: each says
// which run it is from.
func writePage(docs string, r *report) error {
	file := filepath.Join(docs, "flease.md")
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	page := string(text)
	from := "\nFrom `" + r.Command + fmt.Sprintf("`, at a load of %.1f before it.\n", r.Machine.Load)
	for _, t := range r.tables() {
		if t.name == partMachine && !r.sideBySide() {
			continue // it would lack the lock services' versions
		}
		if page, err = replacePart(page, t.name, t.Markdown()+from); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if err := drawAll(filepath.Join(docs, "flease"), r); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(page), 0o644) //nolint:gosec // a page for everybody
}

// replacePart puts text between the marks of a part, each of which is there once.
func replacePart(page, part, text string) (string, error) {
	begin, end := "<!-- "+part+" -->\n", "<!-- end of "+part+" -->\n"
	if strings.Count(page, begin) != 1 || strings.Count(page, end) != 1 {
		return "", fmt.Errorf("want one line %q, and one line %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	before, rest, _ := strings.Cut(page, begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("the end of %s comes before its beginning", part)
	}
	return before + begin + text + end + after, nil
}
