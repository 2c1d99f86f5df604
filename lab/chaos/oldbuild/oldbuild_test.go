package oldbuild

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// commit commits some files in a repository.
func commit(t *testing.T, root string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(args ...string) string {
		out, err := git(t.Context(), root, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	ask("add", "-A")
	ask("-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "--allow-empty", "-m", "a step")
	return ask("rev-parse", "HEAD")
}

// TestOldestBeforeLayers: the file of the version was in another directory.
func TestOldestBeforeLayers(t *testing.T) {
	root := t.TempDir()
	if _, err := git(t.Context(), root, "init", "-q"); err != nil {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	const text = "package wire\n\nconst Version = 2\n"
	commit(t, root, map[string]string{"README": "none"})
	want := commit(t, root, map[string]string{processes: "package main\n", oldProtocol: text})
	commit(t, root, map[string]string{protocol: text})
	if got, err := oldest(t.Context(), root); err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// TestOldest: the first commit with the version of the protocol and all processes.
func TestOldest(t *testing.T) {
	root := t.TempDir()
	if _, err := git(t.Context(), root, "init", "-q"); err != nil {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	speaks := func(v string) string { return "package wire\n\n// Version is it.\nconst Version = " + v + "\n" }
	commit(t, root, map[string]string{protocol: speaks("2")})
	commit(t, root, map[string]string{processes: "package main\n", protocol: speaks("1")})
	want := commit(t, root, map[string]string{protocol: speaks("2")})
	commit(t, root, map[string]string{"README": "more"})
	if got, err := oldest(t.Context(), root); err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	shallow := filepath.Join(t.TempDir(), "shallow")
	if _, err := git(t.Context(), root, "clone", "-q", "--depth", "1", "file://"+root, shallow); err != nil {
		t.Fatal(err)
	}
	if _, err := oldest(t.Context(), shallow); err == nil || !strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Errorf("of a shallow clone: %v", err)
	}
	commit(t, root, map[string]string{protocol: "package wire\n"})
	if _, err := oldest(t.Context(), root); err == nil || !strings.Contains(err.Error(), "update lab/chaos/oldbuild") {
		t.Errorf("got %v", err)
	}
}

func TestNoHistory(t *testing.T) {
	if _, err := Oldest(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "requires a checkout of leasehold with its history") {
		t.Errorf("got %v", err)
	}
}
