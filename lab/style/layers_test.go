package style

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const architecture = "docs/ARCHITECTURE.md"

// A layer is a row of the table in docs/ARCHITECTURE.md.
type layer struct {
	name     string
	packages []string // directories; "dir/..." includes those below
	imports  []string // layers that its packages may import, besides their own
}

// layers parses the table of layers in a text.
func layers(t *testing.T, text string) (all []layer) {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n| layer | packages | may import |\n|---|---|---|\n")
	if !found {
		t.Fatalf("%s has no table of layers", architecture)
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 3 {
			t.Fatalf("%s: a row of the table of layers has %d cells, want 3: %s", architecture, len(cells), row)
		}
		all = append(all, layer{cells[0], strings.Fields(strings.ReplaceAll(cells[1], "`", "")), strings.Fields(cells[2])})
	}
	return all
}

// match returns the length of the longest pattern of a layer that matches a directory, or -1.
func (l layer) match(dir string) int {
	longest := -1
	for _, p := range l.packages {
		prefix, below := strings.CutSuffix(p, "/...")
		if dir == prefix || below && strings.HasPrefix(dir, prefix+"/") {
			longest = max(longest, len(prefix))
		}
	}
	return longest
}

// layerOf returns the layer with the longest matching pattern.
func layerOf(all []layer, dir string) (of layer, found bool) {
	longest := -1
	for _, l := range all {
		if n := l.match(dir); n > longest {
			of, found, longest = l, true, n
		}
	}
	return of, found
}

// workPackage is a package of the workspace, as listed by go list.
type workPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	Module                             struct{ Path string }
}

func (p workPackage) dir() string { return dirOf(p.ImportPath) }

func dirOf(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

func workspace(t *testing.T) (all []workPackage) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Module", "work")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p workPackage
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestLayers checks every import of the workspace against the table of layers.
func TestLayers(t *testing.T) {
	all := layers(t, readFile(t, architecture))
	for _, p := range workspace(t) {
		from, found := layerOf(all, p.dir())
		if !found {
			t.Errorf("%s is in no layer: add it to the table in %s", p.dir(), architecture)
			continue
		}
		for _, path := range p.Imports {
			if !isOurs(path) {
				continue
			}
			if to, _ := layerOf(all, dirOf(path)); to.name != from.name && !slices.Contains(from.imports, to.name) {
				t.Errorf("%s (%s) imports %s (%s): %s may import %q", p.dir(), from.name, dirOf(path), to.name, from.name, from.imports)
			}
		}
	}
}

// moduleImports are the modules that each module may import. In a workspace the go command does not check that.
var moduleImports = map[string][]string{
	"":                  nil,
	"fence/fenceetcd":   {""},
	"fence/fenceredis":  {""},
	"server":            {""},
	"examples":          {"", "server"},
	"lab":               {"", "server"},
	"cmd/leasehold":     {"", "server"},
	"cmd/leasehold-lab": {"", "server", "lab"},
}

// TestModules checks the imports between the modules of the workspace, including those of tests.
func TestModules(t *testing.T) {
	modules := make(map[string]string) // by import path
	packages := workspace(t)
	for _, p := range packages {
		modules[p.ImportPath] = strings.TrimPrefix(strings.TrimPrefix(p.Module.Path, module), "/")
	}
	for _, p := range packages {
		from := modules[p.ImportPath]
		allowed, known := moduleImports[from]
		if !known {
			t.Errorf("module %q is not in the list of this test", from)
		}
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if to := modules[path]; isOurs(path) && to != from && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s: module %q must not require module %q", p.dir(), dirOf(path), from, to)
			}
		}
	}
}

func TestLayerOf(t *testing.T) {
	all := layers(t, "\n| layer | packages | may import |\n|---|---|---|\n| base | `.` `a` | - |\n| upper | `a/b/...` `c` | base |\n\n")
	for dir, want := range map[string]string{".": "base", "a": "base", "a/b": "upper", "a/b/c": "upper", "a/c": "", "c": "upper", "d": ""} {
		if got, _ := layerOf(all, dir); got.name != want {
			t.Errorf("%s is in layer %q, want %q", dir, got.name, want)
		}
	}
}
