// Package mutant plants bugs, to see that the simulator finds those of machines, and tests
// those of the shells around them.
//
// # DESIGN
//
// A mutant is a change of a line or two of the real source. It lives here as
// text, and not behind a hook in the machines: what we ship has no switch that
// turns safety off. To run one, the command is built anew with the changed
// file laid over the real one (go build -overlay), which takes seconds. Tests,
// which run all of them, build a smaller program.
//
// The old text must occur exactly once in its file. A test checks that, so
// that a mutant cannot silently stop being one when the code moves on.
package mutant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

const module = "github.com/leasehold-dev/leasehold"

// A Mutant is a planted bug.
type Mutant struct {
	Name string
	Why  string // what goes wrong with it
	File string // relative to the module
	Old  string // the source, exactly once in File
	New  string // what stands there instead
	// Seeds is how many seeds from 1 on are searched for it: several times as
	// many as it took when it was planted.
	Seeds int
	// World is the flags of the worlds in which it shows, if the usual ones do
	// not: some bugs need several things to go wrong at once.
	World string

	// Package and Test are what catches it, if it is a bug of a shell: tests, built with
	// failpoints.
	Package, Test string
}

// All returns every mutant of the clusters, sorted by name.
func All() []Mutant {
	return sorted(owners, managers, promises, moves, lookups, standbys, elections, restores, suspensions, diskless)
}

// Fleases returns every mutant of Flease, sorted by name: its simulator is
// another one.
func Fleases() []Mutant {
	return sorted(fleaseRecovery, fleaseTimes, fleaseRounds, fleaseAsking, fleaseWishes, fleaseTwins)
}

// Shells returns every mutant of the shells, sorted by name. No simulator runs those.
func Shells() []Mutant { return sorted(shellsOfOwners, shellsOfManagers) }

func sorted(lists ...[]Mutant) []Mutant {
	all := slices.Concat(lists...)
	for i := range all {
		if all[i].Seeds == 0 {
			all[i].Seeds = 1000
		}
	}
	slices.SortFunc(all, func(a, b Mutant) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find returns the mutant of the clusters of that name.
func Find(name string) (Mutant, bool) { return find(All(), name) }

// FindFlease returns the mutant of Flease of that name.
func FindFlease(name string) (Mutant, bool) { return find(Fleases(), name) }

func find(all []Mutant, name string) (Mutant, bool) {
	for _, m := range all {
		if m.Name == name {
			return m, true
		}
	}
	return Mutant{}, false
}

// Build builds the command with the bug in it, from the checkout that the
// working directory is in, into the file out.
func Build(ctx context.Context, m Mutant, out string) error {
	return m.build(ctx, "./cmd/leasehold", out)
}

func (m Mutant) build(ctx context.Context, program, out string) error {
	return m.compile(ctx, out, program, "build")
}

// buildTest builds the tests that catch the mutant of a shell.
func (m Mutant) buildTest(ctx context.Context, out string) error {
	return m.compile(ctx, out, m.Package, "test", "-c", "-tags=failpoints", "-ldflags=-s -w") // half as long to link
}

// compile has go build something with the bug in it.
func (m Mutant) compile(ctx context.Context, out, what string, command ...string) error {
	const op = "build mutant"
	root, err := checkout()
	if err != nil {
		return &leasehold.Error{Op: op, Kind: leasehold.NotFound, Subject: m.Name, Err: err}
	}
	dir, err := os.MkdirTemp("", "leasehold-mutant-")
	if err != nil {
		return &leasehold.Error{Op: op, Subject: m.Name, Err: err}
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is in the system's temporary directory
	overlay, err := m.lay(root, dir)
	if err != nil {
		return &leasehold.Error{Op: op, Kind: leasehold.Internal, Subject: m.Name, Err: err}
	}
	cmd := exec.CommandContext(ctx, "go", append(command, "-overlay", overlay, "-o", out, what)...)
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return leasehold.Errorf(op, leasehold.Internal, m.Name, "%v\n%s", err, text)
	}
	return nil
}

// lay writes the changed file and the overlay that puts it in place.
func (m Mutant) lay(root, dir string) (string, error) {
	original := filepath.Join(root, filepath.FromSlash(m.File))
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	planted, err := m.plant(string(source))
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(planted), 0o600); err != nil { //nolint:gosec // a directory of our own
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// plant returns the source with the bug in it.
func (m Mutant) plant(source string) (string, error) {
	if n := strings.Count(source, m.Old); n != 1 {
		return "", fmt.Errorf("%s has its text %d times, want once: the code has moved on, and the mutant must follow\n%s", m.File, n, m.Old)
	}
	return strings.Replace(source, m.Old, m.New, 1), nil
}

// checkout finds the root of the module that the working directory is in.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+module+"\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("a mutant is built from source: run this inside a checkout of " + module)
		}
		dir = up
	}
}
