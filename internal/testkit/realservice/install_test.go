//go:build unix

package realservice

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programs are the programs on the script's path, with the text of fake ones; the others are the real ones.
type programs map[string]string

// put creates a directory with the programs.
func (p programs) put(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	for name, text := range p {
		path := filepath.Join(bin, name)
		if text != "" {
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		original, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("there is no %s here", name)
		}
		if err := os.Symlink(original, path); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// runInstall runs the script with only these programs on the path.
func runInstall(t *testing.T, p programs, args ...string) string {
	t.Helper()
	cmd := exec.Command("./install", args...)
	cmd.Env = []string{"PATH=" + p.put(t)}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// A missing prerequisite is one line of output, and no failure.
func TestInstallNotPossible(t *testing.T) {
	never := "echo apt-get was called; exit 1"
	for name, c := range map[string]struct {
		programs programs
		args     []string
		want     string
	}{
		"no apt-get":  {programs{"ls": "", "id": "", "timeout": "", "flock": ""}, nil, "redis-server chromium (not installed: apt-get)"},
		"no timeout":  {programs{"ls": "", "id": "", "apt-get": never, "flock": ""}, nil, "redis-server chromium (not installed: timeout)"},
		"not root":    {programs{"ls": "", "id": "echo 1000", "timeout": "", "flock": "", "apt-get": never}, nil, "redis-server chromium (only root can install it)"},
		"only report": {programs{"ls": "", "id": "echo 0", "timeout": "", "flock": "", "apt-get": never}, []string{"report"}, "redis-server chromium (make services prints the reason)"},
	} {
		t.Run(name, func(t *testing.T) {
			out := runInstall(t, c.programs, c.args...)
			if !strings.HasPrefix(out, "NOT TESTED: tests that need them are skipped. Missing: ") || !strings.Contains(out, c.want) || strings.Count(out, "\n") != 1 {
				t.Errorf("output %q, want one line with %q", out, c.want)
			}
		})
	}
}

func TestInstallHasNothingToDo(t *testing.T) {
	out := runInstall(t, programs{"ls": "", "z3": "true", "initdb": "true", "redis-server": "true", "chromium": "true", "apt-get": "echo apt-get was called"})
	if out != "" {
		t.Errorf("output %q, want nothing", out)
	}
}

// Dependencies of models are separate from those of tests.
func TestInstallForModels(t *testing.T) {
	if out := runInstall(t, programs{"z3": "true", "spin": "true", "cc": "true", "apt-get": "echo apt-get was called"}, "models"); out != "" {
		t.Errorf("output %q, want nothing", out)
	}
	out := runInstall(t, programs{"id": "echo 1000", "timeout": "", "flock": "", "apt-get": "echo apt-get was called"}, "models")
	if want := "NOT CHECKED: the models in verify. Missing: z3 spin gcc libc6-dev (only root can install it)\n"; out != want {
		t.Errorf("output %q, want %q", out, want)
	}
}
