package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const survivorsFile = "lab/mutagen/survivors.txt"

const survivorsHead = `# Generated mutants that survive, by package. go run ./lab/mutagen adds and removes lines.
# A mutant that no test can kill has the reason indented under it, beginning with "equivalent:".
`

// survivors has the reason why each survivor is equivalent, by package and id; "" if it is not.
type survivors map[string]map[string]string

func parseSurvivors(text string) (survivors, error) {
	all := make(survivors)
	var dir, id string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			dir = strings.Trim(line, "[]")
			all[dir] = make(map[string]string)
		case strings.HasPrefix(line, "    equivalent: ") && id != "":
			all[dir][id] = strings.TrimPrefix(line, "    equivalent: ")
		case line[0] == ' ' || dir == "":
			return nil, fmt.Errorf("%s: %q is neither a package, nor a mutant, nor a reason", survivorsFile, line)
		default:
			id = line
			all[dir][id] = ""
		}
	}
	return all, nil
}

func readSurvivors() (survivors, error) {
	text, err := os.ReadFile(survivorsFile)
	if err != nil {
		return nil, err
	}
	return parseSurvivors(string(text))
}

// update sets the survivors of a package, and keeps their reasons.
func (s survivors) update(p *pkg, r results) {
	reasons := s[p.dir]
	s[p.dir] = make(map[string]string)
	for _, m := range p.mutants() {
		reason, listed := reasons[m.id()]
		if result := r.of(m); isSurvivor(result) || result == "" && listed {
			s[p.dir][m.id()] = reason
		}
	}
}

// dropGone removes the survivors of a package that do not exist any more, and returns their number.
func (s survivors) dropGone(dir string) (gone int, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return 0, err
	}
	exist := make(map[string]bool)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name) //nolint:gosec // a file of the checkout
		if err != nil {
			return 0, err
		}
		file, err := parse(name, string(text))
		if err != nil {
			return 0, err
		}
		for _, f := range file.functions() {
			for _, m := range f.mutants {
				exist[m.id()] = true
			}
		}
	}
	before := len(s[dir])
	maps.DeleteFunc(s[dir], func(id, _ string) bool { return !exist[id] })
	return before - len(s[dir]), nil
}

func (s survivors) String() string {
	var b strings.Builder
	b.WriteString(survivorsHead)
	for _, dir := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "\n[%s]\n", dir)
		for _, id := range slices.Sorted(maps.Keys(s[dir])) {
			b.WriteString(id + "\n")
			if reason := s[dir][id]; reason != "" {
				b.WriteString("    equivalent: " + reason + "\n")
			}
		}
	}
	return b.String()
}
