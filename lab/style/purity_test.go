package style

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the root of the module, relative to this package's directory, in which
// go test runs its tests.
const root = "../.."

// machines is the directory of the machines. Its packages are found by walking: a new machine is checked
// without a change here.
const machines = "internal/core/machine"

// requiredMachines must be found by the walk, so that this test fails after a renaming of the directory.
var requiredMachines = []string{"owner", "manager", "lookup", "relay", "leadership/byrecord", "leadership/bylease", "managerproc"}

// purePackages are the packages that the machines import, and the vocabulary.
var purePackages = []string{
	".",
	"internal/core/changelog",
	"internal/core/hotkeys",
	"internal/core/keyindex",
	"internal/core/keyrange",
	"internal/core/mono",
	"internal/core/protocol",
	"internal/core/storage",
	"internal/core/table",
	"partition",
}

// exceptions are allowed package-level variables, by directory, with a reason. Assignments to them are still
// forbidden, here and in every package that could.
var exceptions = map[string][]string{
	// All is the whole key space: a constant, but Go has no constant structs.
	".": {"All"},
	// DefaultLimits is a preset of numbers, which roles copy to their configuration.
	"internal/core/protocol": {"DefaultLimits"},
}

func TestMachinesArePure(t *testing.T) {
	for _, dir := range pureDirs(t) {
		t.Run(dir, func(t *testing.T) {
			for _, violation := range impurities(sources(t, dir), exceptions[dir]...) {
				t.Error(violation)
			}
		})
	}
}

// TestExceptionsAreNeeded: each exception is needed.
func TestExceptionsAreNeeded(t *testing.T) {
	for dir, names := range exceptions {
		without := strings.Join(impurities(sources(t, dir)), "\n")
		for _, name := range names {
			if !strings.Contains(without, "package variable "+name) {
				t.Errorf("%s: %s needs no exception: remove it from the list", dir, name)
			}
		}
	}
}

func TestEveryMachineIsFound(t *testing.T) {
	found := machineDirs(t)
	for _, name := range requiredMachines {
		if dir := machines + "/" + name; !slices.Contains(found, dir) {
			t.Errorf("no Go package in %s; found %q", dir, found)
		}
	}
}

// pureDirs returns the directories of all packages that must be pure.
func pureDirs(t *testing.T) []string {
	t.Helper()
	return append(slices.Clone(purePackages), machineDirs(t)...)
}

// machineDirs returns the directories below machines with Go files.
func machineDirs(t *testing.T) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(filepath.Join(root, machines), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		if entry.IsDir() || !isProductionSource(entry.Name()) {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if dir = filepath.ToSlash(dir); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// sources returns the non-test Go files of a directory, by path.
func sources(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, entry := range entries {
		if entry.IsDir() || !isProductionSource(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.ToSlash(filepath.Join(dir, entry.Name()))] = string(text)
	}
	if len(files) == 0 {
		t.Errorf("%s: no Go files: has the package moved?", dir)
	}
	return files
}

func isProductionSource(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}
