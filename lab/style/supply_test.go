package style

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestBuildIsReproducible: a second build of a release is identical, so that modifications can be detected.
// make reproducible is more thorough.
func TestBuildIsReproducible(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skipf("NOT TESTED: reproducible builds, because this is not a repository: %v", err)
	}
	t.Parallel()
	build := exec.CommandContext(t.Context(), "tools/reproducible", "--quick")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

const dependencies = "docs/DEPENDENCIES.md"

// modules returns the directories of the modules of this repository, as in the document.
func modules() []string {
	return []string{
		".", "server", "lab", "examples", "cmd/leasehold", "cmd/leasehold-lab", "fence/fenceetcd", "fence/fenceredis",
		"tools", "tools/buf", "tools/sbom",
	}
}

// isOurs reports whether a module is in this repository.
func isOurs(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// A goMod is the output of "go mod edit -json".
type goMod struct {
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
	Tool []struct{ Path string }
}

func readMod(t *testing.T, dir string) (m goMod) {
	t.Helper()
	edit := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	edit.Dir = filepath.Join(root, dir)
	out, err := edit.Output()
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		t.Fatalf("%s/go.mod: %v", dir, err)
	}
	return m
}

// direct returns the modules that code of this repository imports, or whose programs it runs.
func (m goMod) direct() (paths []string) {
	for _, r := range m.Require {
		isTool := slices.ContainsFunc(m.Tool, func(tool struct{ Path string }) bool { return strings.HasPrefix(tool.Path+"/", r.Path+"/") })
		if (!r.Indirect || isTool) && !isOurs(r.Path) {
			paths = append(paths, r.Path)
		}
	}
	slices.Sort(paths)
	return paths
}

// TestEveryDependencyHasAReason compares the document with all go.mod files: the numbers of dependencies of
// each module, and a reason for each direct dependency.
func TestEveryDependencyHasAReason(t *testing.T) {
	text := readFile(t, dependencies)
	var direct, listed []string
	for _, dir := range modules() {
		mod := readMod(t, dir)
		direct = append(direct, mod.direct()...)
		if want := fmt.Sprintf("\n| `%s` | %d | %d | ", dir, len(mod.direct()), mod.others()); !strings.Contains(text, want) {
			t.Errorf("%s: want a row that begins with %q", dependencies, want[1:])
		}
	}
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.+) \\|$").FindAllStringSubmatch(text[strings.Index(text, "## Direct"):], -1) {
		listed = append(listed, match[1])
		if len(match[2]) < 10 {
			t.Errorf("%s: %s: %q is not a reason", dependencies, match[1], match[2])
		}
	}
	slices.Sort(direct)
	slices.Sort(listed)
	if diff := gocmp.Diff(slices.Compact(direct), listed); diff != "" {
		t.Errorf("the direct dependencies in %s differ from the go.mod files (-go.mod +document):\n%s", dependencies, diff)
	}
}

// others returns the number of required modules that are not in this repository.
func (m goMod) others() (n int) {
	for _, r := range m.Require {
		if !isOurs(r.Path) {
			n++
		}
	}
	return n
}

// TestModulesArePinned: every module has a version and a checksum. The modules for users have no
// replacements.
func TestModulesArePinned(t *testing.T) {
	for _, dir := range modules() {
		mod, sums := readMod(t, dir), readFile(t, filepath.Join(dir, "go.sum"))
		instead := make(map[string]string)
		for _, r := range mod.Replace {
			instead[r.Old.Path] = r.New.Path + " " + r.New.Version
			if dir == "." { // a replacement does not apply to modules that require this one
				t.Errorf("go.mod: %s is replaced by %s, which has no effect in modules that require this one", r.Old.Path, r.New.Path)
			}
		}
		for _, r := range mod.Require {
			pinned := cmp.Or(instead[r.Path], r.Path+" "+r.Version)
			if !isOurs(r.Path) && !strings.Contains(sums, pinned+"/go.mod h1:") {
				t.Errorf("%s/go.sum: no checksum of %s", dir, pinned)
			}
		}
	}
}

// TestLinkedModules compares the numbers of linked modules with the document.
func TestLinkedModules(t *testing.T) {
	text := readFile(t, dependencies)
	row := regexp.MustCompile(`(?m)^\| (.+) \| ([0-9]+) \|$`)
	name := regexp.MustCompile("`([a-z]+)`")
	rows := row.FindAllStringSubmatch(text, -1)
	if len(rows) < 4 {
		t.Fatalf("%s: the table of linked modules has %d rows", dependencies, len(rows))
	}
	for _, r := range rows {
		for _, n := range name.FindAllStringSubmatch(r[1], -1) {
			pattern := strings.Replace("./"+n[1], "./leasehold", "./cmd/leasehold", 1)
			if got := len(linkedModules(t, pattern)); strconv.Itoa(got) != r[2] {
				t.Errorf("%s: %s links %d modules, not %s", dependencies, n[1], got, r[2])
			}
		}
	}
}

// linkedModules returns the modules that a package links, directly or indirectly, except for those of this repository.
func linkedModules(t *testing.T, pattern string) map[string]bool {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", pattern)
	list.Dir, list.Env = root, append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list, err)
	}
	found := make(map[string]bool)
	for path := range strings.FieldsSeq(string(out)) {
		if !isOurs(path) {
			found[path] = true
		}
	}
	return found
}
