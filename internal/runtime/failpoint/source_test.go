//go:build failpoints

package failpoint

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const root = "../../.."

var rewrite = flag.Bool("rewrite", false, "write docs/FAILPOINTS.md")

// prefixes are the prefixes of points by package, where they differ from the package name.
var prefixes = map[string]string{
	"internal/runtime/store/kv": "store", "internal/runtime/broadcast": "manager",
	"internal/runtime/managerconn": "link", "internal/runtime/statemove": "mover",
}

// A use is a call of this package in the source.
type use struct {
	name, function, dir string
	at                  token.Position
}

// uses returns all calls outside tests.
func uses(t *testing.T) (all []use) {
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && rel != "." || rel == "lab/bench" || rel == "tools" || rel == "internal/runtime/failpoint"):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(text, []byte("internal/runtime/failpoint\"")) {
			return err
		}
		file, err := parser.ParseFile(files, name, text, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			function, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if from, ok := function.X.(*ast.Ident); !ok || from.Name != "failpoint" || function.Sel.Name == "Environ" {
				return true
			}
			u := use{function: function.Sel.Name, dir: path.Dir(filepath.ToSlash(rel)), at: files.Position(call.Pos())}
			if text, ok := call.Args[0].(*ast.BasicLit); ok {
				u.name, _ = strconv.Unquote(text.Value)
			}
			all = append(all, u)
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The list has all points of the source. Each is used once and named after its package.
func TestListMatchesSource(t *testing.T) {
	functions := map[kind]string{passes: "Here", fails: "Fail", loses: "Drop"}
	seen := make(map[string]bool)
	for _, u := range uses(t) {
		p := find(u.name)
		prefix := prefixes[u.dir]
		if prefix == "" {
			prefix = path.Base(u.dir)
		}
		switch {
		case p == nil:
			t.Errorf("%v: %q is not in points.go, or not a literal", u.at, u.name)
		case functions[p.kind] != u.function:
			t.Errorf("%v: %s uses %s, want %s", u.at, u.name, u.function, functions[p.kind])
		case seen[u.name]:
			t.Errorf("%v: %s is used twice", u.at, u.name)
		case !strings.HasPrefix(u.name, prefix+"/"):
			t.Errorf("%v: %s does not have the prefix of its package, %s", u.at, u.name, prefix)
		}
		seen[u.name] = true
	}
	for _, p := range Points() {
		if !seen[p.Name] {
			t.Errorf("%s is not used", p.Name)
		}
		if p.When == "" {
			t.Errorf("%s has no When", p.Name)
		}
	}
	if n := len(Points()); n < 30 {
		t.Errorf("there are %d points, want at least 30", n)
	}
}

// TestDocumentHasAllPoints: docs/FAILPOINTS.md lists the points. -rewrite writes it.
func TestDocumentHasAllPoints(t *testing.T) {
	var page strings.Builder
	page.WriteString("# Failpoints\n\n<!-- Written by: go test -tags failpoints ./internal/runtime/failpoint -rewrite -->\n\n" +
		"Points in the shells at which a build with the tag `failpoints` can kill or stop a process: [how they are tested](RELIABILITY.md#failpoints).\n\n" +
		"| failpoint | actions | position |\n|---|---|---|\n")
	for _, p := range Points() {
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", p.Name, strings.Join(p.Actions(), ", "), p.When)
	}
	file := filepath.Join(root, "docs", "FAILPOINTS.md")
	text, err := os.ReadFile(file)
	switch {
	case string(text) == page.String():
	case *rewrite:
		if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not the list of points (%v): run go test -tags failpoints ./internal/runtime/failpoint -rewrite", file, err)
	}
}

// The shipped command has no failpoints. With the tag it contains their names, so this test can detect them.
func TestCommandHasNoFailpoints(t *testing.T) {
	for tags, want := range map[string]bool{"": false, "failpoints": true} {
		t.Run("tags="+tags, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "leasehold")
			cmd := exec.CommandContext(t.Context(), "go", "build", "-tags="+tags, "-o", program, "./cmd/leasehold")
			cmd.Dir = root
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			binary, err := os.ReadFile(program)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range Names() {
				if got := bytes.Contains(binary, []byte(name)); got != want {
					t.Errorf("has the name %s: %t, want %t", name, got, want)
				}
			}
		})
	}
}
