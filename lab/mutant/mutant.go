// Package mutant plants bugs, to test that the simulator finds those in machines, and tests those in the
// shells around them.
//
// # DESIGN
//
// A mutant is a change of a line or two of the real source. It is a patch and not a hook in the machines: the
// product has no switch that turns safety off. To run one, the command is built with the changed file as an
// overlay (go build -overlay), which takes seconds. Tests, which run all mutants, build a smaller program.
//
// A patch begins with a description of the bug. The lines that a hunk replaces, with the lines around them,
// must occur exactly once in the file. A test checks that, so that a change of the code does not silently
// disable a mutant.
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

// patches is the directory of the patches in a checkout: the command does not contain them.
const patches = "lab/mutant/patches"

// A Mutant is a planted bug.
type Mutant struct {
	Name string
	// Seeds is the number of seeds to search, from 1 on: several times as many as were needed when the bug
	// was planted.
	Seeds int
	// World has the flags of the worlds in which the bug has an effect, if the default ones are not enough:
	// some bugs require several faults at once.
	World string

	// Package and Test identify the test that detects the bug, if no simulator does.
	Package, Test string

	// Patch is a description of the bug, followed by a unified diff of one file. If it is empty, it is in the
	// file of that name.
	Patch string
}

// All returns all mutants of clusters, sorted by name.
func All() []Mutant { return sorted(clusters) }

// Fleases returns all mutants of Flease, which has a simulator of its own, sorted by name.
func Fleases() []Mutant { return sorted(fleases) }

// Shells returns all mutants that a test detects, sorted by name.
func Shells() []Mutant { return sorted(shells) }

// Demos returns all mutants that the demo detects, sorted by name.
func Demos() []Mutant { return sorted(demos) }

// Find returns the mutant with a name.
func Find(all []Mutant, name string) (Mutant, bool) {
	i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name })
	if i < 0 {
		return Mutant{}, false
	}
	return all[i], true
}

// Build builds a program, such as ./cmd/leasehold, with the bug, from the checkout of the working directory,
// into the file out.
func (m Mutant) Build(ctx context.Context, program, out string) error {
	return m.compile(ctx, out, program, "build")
}

// Why returns the description of the bug; "" outside of a checkout.
func (m Mutant) Why() string {
	root, err := checkout()
	if err != nil {
		return ""
	}
	patch, err := m.patch(root)
	if err != nil {
		return ""
	}
	text, _, _ := strings.Cut(patch, "\n--- ")
	return strings.Join(strings.Fields(text), " ")
}

func (m Mutant) patch(root string) (string, error) {
	if m.Patch != "" {
		return m.Patch, nil
	}
	text, err := os.ReadFile(filepath.Join(root, patches, m.Name+".patch")) //nolint:gosec // a file of the checkout
	return string(text), err
}

func sorted(all []Mutant) []Mutant {
	all = slices.Clone(all)
	for i := range all {
		if all[i].Seeds == 0 {
			all[i].Seeds = 1000
		}
	}
	slices.SortFunc(all, func(a, b Mutant) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (m Mutant) buildTest(ctx context.Context, out string) error {
	return m.compile(ctx, out, m.Package, "test", "-c", "-tags=failpoints", "-ldflags=-s -w") // links twice as fast
}

func (m Mutant) compile(ctx context.Context, out, what string, command ...string) error {
	const op = "build mutant"
	root, err := checkout()
	if err != nil {
		return &leasehold.Error{Op: op, Kind: leasehold.ErrNotFound, Subject: m.Name, Err: err}
	}
	dir, err := os.MkdirTemp("", "leasehold-mutant-")
	if err != nil {
		return &leasehold.Error{Op: op, Subject: m.Name, Err: err}
	}
	defer func() { _ = os.RemoveAll(dir) }() // in the system's temporary directory
	overlay, err := m.lay(root, dir)
	if err != nil {
		return &leasehold.Error{Op: op, Kind: leasehold.ErrInternal, Subject: m.Name, Err: err}
	}
	cmd := exec.CommandContext(ctx, "go", append(command, "-overlay", overlay, "-o", out, what)...)
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return leasehold.Errorf(op, leasehold.ErrInternal, m.Name, "%v\n%s", err, text)
	}
	return nil
}

// lay writes the changed file and the overlay that replaces the original by it.
func (m Mutant) lay(root, dir string) (string, error) {
	original, planted, err := m.plant(root)
	if err != nil {
		return "", err
	}
	return Overlay(dir, map[string]string{original: planted})
}

// Overlay writes files with changed texts into a directory, and the overlay for go build that replaces the
// originals by them. It returns the overlay's name.
func Overlay(dir string, texts map[string]string) (string, error) {
	replace := make(map[string]string, len(texts))
	for original, text := range texts {
		changed := filepath.Join(dir, fmt.Sprintf("changed%d.go", len(replace)))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[original] = changed
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// plant returns the file with the bug, and its changed content.
func (m Mutant) plant(root string) (file, planted string, err error) {
	patch, err := m.patch(root)
	if err != nil {
		return "", "", err
	}
	_, diff, _ := strings.Cut(patch, "\n--- a/")
	name, diff, _ := strings.Cut(diff, "\n")
	_, diff, found := strings.Cut(diff, "\n@@ ")
	if !found {
		return "", "", errors.New("the patch has no hunk")
	}
	file = filepath.Join(root, filepath.FromSlash(name))
	source, err := os.ReadFile(file) //nolint:gosec // a file of the checkout
	if err != nil {
		return "", "", err
	}
	planted = string(source)
	for hunk := range strings.SplitSeq(diff, "\n@@ ") {
		was, is, found := place(planted, hunk)
		if !found {
			return "", "", fmt.Errorf("%s does not have these lines exactly once: update the patch\n%s", name, was)
		}
		planted = strings.Replace(planted, was, is, 1)
	}
	return file, planted, nil
}

// place returns the lines of a text that a hunk replaces, and their replacement. It uses as many of the lines
// around the change as it needs to be unique: comments nearby may change.
func place(text, hunk string) (was, is string, found bool) {
	_, body, _ := strings.Cut(hunk, "\n") // without the line numbers
	lines := slices.Collect(strings.Lines(body))
	context := func(line string) bool { return line[0] != '-' && line[0] != '+' }
	before := slices.IndexFunc(lines, func(line string) bool { return !context(line) })
	after := 0
	for after < len(lines) && context(lines[len(lines)-1-after]) {
		after++
	}
	for dropped := range max(before, 0) + after + 1 {
		for top := max(0, dropped-after); top <= min(dropped, before); top++ {
			was, is = sides(lines[top : len(lines)-(dropped-top)])
			if was != "" && strings.Count(text, was) == 1 {
				return was, is, true
			}
		}
	}
	was, is = sides(lines)
	return was, is, false
}

func sides(lines []string) (was, is string) {
	for _, line := range lines {
		switch line[0] {
		case '-':
			was += line[1:]
		case '+':
			is += line[1:]
		default:
			was, is = was+line[1:], is+line[1:]
		}
	}
	return was, is
}

// checkout returns the root of the module that contains the working directory.
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
