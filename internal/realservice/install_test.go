//go:build unix

package realservice

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runInstall runs the script where nothing is on the path but these programs, some
// of which are made up: their text is given.
func runInstall(t *testing.T, programs map[string]string, args ...string) string {
	t.Helper()
	bin := t.TempDir()
	for name, text := range programs {
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
	cmd := exec.Command("./install", args...)
	cmd.Env = []string{"PATH=" + bin}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// What cannot be installed is said in one line, and is no failure.
func TestInstallCannot(t *testing.T) {
	never := "echo apt-get was called; exit 1"
	for name, c := range map[string]struct {
		programs map[string]string
		args     []string
		want     string
	}{
		"no apt-get":  {map[string]string{"ls": "", "id": "", "timeout": ""}, nil, "redis-server (there is no apt-get here)"},
		"not root":    {map[string]string{"ls": "", "id": "echo 1000", "timeout": "", "apt-get": never}, nil, "redis-server (only root can install it)"},
		"only report": {map[string]string{"ls": "", "id": "echo 0", "timeout": "", "apt-get": never}, []string{"report"}, "redis-server (make services says why)"},
	} {
		t.Run(name, func(t *testing.T) {
			out := runInstall(t, c.programs, c.args...)
			if !strings.HasPrefix(out, "NOT TESTED for want of ") || !strings.Contains(out, c.want) || strings.Count(out, "\n") != 1 {
				t.Errorf("it says %q, want one line with %q", out, c.want)
			}
		})
	}
}

func TestInstallHasNothingToDo(t *testing.T) {
	out := runInstall(t, map[string]string{"ls": "", "initdb": "true", "redis-server": "true", "apt-get": "echo apt-get was called"})
	if out != "" {
		t.Errorf("it says %q, want nothing", out)
	}
}
