package style

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAutomationRunsMakeTest: the automation runs the same commands as a developer. Further steps belong into
// the Makefile.
func TestAutomationRunsMakeTest(t *testing.T) {
	const script = ".ci/run"
	info, err := os.Stat(filepath.Join(root, script))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode()&0o111 == 0 {
		t.Errorf("%s is not executable", script)
	}
	text := readFile(t, script)
	if !strings.HasPrefix(text, "#!/usr/bin/env bash\n") {
		t.Errorf("%s is not a bash script", script)
	}
	if got, want := commands(text), []string{"set -euo pipefail", "make test", "make check"}; !slices.Equal(got, want) {
		t.Errorf("%s runs %q, want %q", script, got, want)
	}
}

// commands returns the commands of a script: no blank lines, no comments, and not the change to the
// repository's root.
func commands(script string) []string {
	var lines []string
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || line == `cd "$(dirname "${BASH_SOURCE[0]}")/.."` {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

func TestCommands(t *testing.T) {
	got := commands("#!/bin/sh\n\n# why\nmake test\n  go test ./... # more\ncd /tmp && rm -r x\n")
	want := []string{"make test", "go test ./... # more", "cd /tmp && rm -r x"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// targets returns the targets of a Makefile with their help, the text after "##", which may be empty. Special
// targets such as .PHONY are omitted.
func targets(makefile string) map[string]string {
	found := make(map[string]string)
	for line := range strings.Lines(makefile) {
		names, rest, isRule := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		isAssignment := strings.Contains(names, "=") || strings.HasPrefix(strings.TrimLeft(rest, ":"), "=")
		if !isRule || isAssignment || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "\t") {
			continue
		}
		_, help, _ := strings.Cut(rest, "##")
		for target := range strings.FieldsSeq(names) {
			if !strings.HasPrefix(target, ".") {
				found[target] = strings.TrimSpace(help)
			}
		}
	}
	return found
}

func TestTargets(t *testing.T) {
	got := targets("X := a:b\nY ?= 1\nZ = c: d\n.PHONY: all\nall: one two ## do it all\n" +
		"one: # no help\n\techo a: b ## no target\ntwo three:\n\ttrue\nfour:## tight\nbin/x: y.go ## a file\n")
	want := map[string]string{"all": "do it all", "one": "", "two": "", "three": "", "four": "tight", "bin/x": "a file"}
	for target, help := range want {
		if have, ok := got[target]; !ok || have != help {
			t.Errorf("target %s: have %t, help %q, want %q", target, ok, have, help)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestEveryTargetHasHelp: make help lists every target.
func TestEveryTargetHasHelp(t *testing.T) {
	makefile := readFile(t, "Makefile")
	found := targets(makefile)
	for target, help := range found {
		if help == "" {
			t.Errorf("target %s has no help: write it after ## on the target's line", target)
		}
	}
	for _, target := range []string{"help", "build", "test", "test-race", "lint", "fuzz", "bench-sim", "cover", "clean"} {
		if _, ok := found[target]; !ok {
			t.Errorf("no target %s", target)
		}
	}
	if !strings.Contains(makefile, "\n.DEFAULT_GOAL := help\n") {
		t.Error("make alone does not print the help")
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
