// Package oldbuild builds an old version of the leasehold command: that of the oldest commit that is
// compatible with this one. So upgrades and downgrades are between different builds.
package oldbuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The requirements for an older commit: the processes of a chaos run, and the same version of the protocol.
const (
	processes   = "cmd/leasehold/chaos_child.go"
	protocol    = "internal/runtime/wire/version.go"
	oldProtocol = "internal/wire/version.go" // before the packages were moved into layers
	version     = "const Version = "
)

// A Build is a program, and its commit.
type Build struct {
	Program string
	Commit  string // and its date
}

// Oldest builds the oldest compatible commit. Dir is a directory of the checkout, which must have its
// history. Builds are cached in the user's cache directory by commit.
func Oldest(ctx context.Context, dir string) (Build, error) {
	root, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return Build{}, fmt.Errorf("looking for an older commit, which requires a checkout of leasehold with its history: %w", err)
	}
	commit, err := oldest(ctx, root)
	if err != nil {
		return Build{}, err
	}
	made, err := git(ctx, root, "show", "--no-patch", "--format=%h of %cI", commit)
	if err != nil {
		return Build{}, err
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		caches = os.TempDir()
	}
	place := filepath.Join(caches, "leasehold-elder")
	b := Build{Program: filepath.Join(place, commit), Commit: made}
	if _, err := os.Stat(b.Program); err == nil {
		return b, nil
	}
	return b, errors.Join(os.MkdirAll(place, 0o700), build(ctx, root, commit, b.Program))
}

func oldest(ctx context.Context, root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, protocol))
	if err != nil {
		return "", err
	}
	ours, ok := versionIn(string(text))
	if !ok {
		return "", fmt.Errorf("%s does not contain %q: update lab/chaos/oldbuild", protocol, version)
	}
	since, err := git(ctx, root, "log", "--diff-filter=A", "--format=%H", "--", processes)
	if err != nil {
		return "", err
	}
	if shallow, err := git(ctx, root, "rev-parse", "--is-shallow-repository"); err != nil || shallow == "true" {
		return "", errors.Join(err, errors.New("the history of this checkout is incomplete: run git fetch --unshallow first, or omit --other"))
	}
	first := since[strings.LastIndexByte(since, '\n')+1:]
	all, err := git(ctx, root, "log", "--reverse", "--first-parent", "--format=%H", first+"^..HEAD")
	if err != nil {
		return "", err
	}
	for _, commit := range strings.Fields(all) {
		text, err := git(ctx, root, "show", commit+":"+protocol)
		if err != nil {
			text, err = git(ctx, root, "show", commit+":"+oldProtocol)
		}
		if theirs, ok := versionIn(text); err == nil && ok && theirs == ours {
			if _, err := git(ctx, root, "cat-file", "-e", commit+":"+processes); err == nil {
				return commit, nil
			}
		}
	}
	return "", fmt.Errorf("no commit has version %s of the protocol", ours)
}

// versionIn returns the version of the protocol in the text of a file.
func versionIn(text string) (string, bool) {
	_, after, ok := strings.Cut(text, version)
	number, _, _ := strings.Cut(after, "\n")
	return number, ok
}

// build builds a commit in a temporary directory.
func build(ctx context.Context, root, commit, out string) error {
	dir, err := os.MkdirTemp("", "leasehold-elder-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	files := filepath.Join(dir, "files.tar")
	if _, err := git(ctx, root, "archive", "--output", files, commit); err != nil {
		return err
	}
	built := out + ".new"
	for _, args := range [][]string{
		{"tar", "-xf", files},
		{"go", "build", "-o", built, "./cmd/leasehold"}, // at that commit, one program had all commands
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building commit %s: %s: %w\n%s", commit, strings.Join(args, " "), err, out)
		}
	}
	return os.Rename(built, out)
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
