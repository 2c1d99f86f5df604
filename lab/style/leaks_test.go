package style

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// starters are functions that start something which a test can leak, by package.
var starters = map[string][]string{
	"net": {"Listen"}, "httptest": {"NewServer", "NewTLSServer", "NewUnstartedServer"}, "grpc": {"NewServer"}, "exec": {"Command", "CommandContext"},
	"manager": {"Start"}, "owner": {"Join"}, "lookup": {"Open"}, "flease": {"Start"}, "etcd": {"Embed", "Open"},
	"leaseholdtest": {"Run"}, "synctest": {"Test"},
}

// TestPackagesCheckForLeaks: if the tests of a package start servers, processes or goroutines, they check
// for leaks of these, and of descriptors, at the end.
func TestPackagesCheckForLeaks(t *testing.T) {
	starts, looks := make(map[string]string), make(map[string]bool)
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (rel == "lab/bench" || rel == "tools" || strings.HasPrefix(d.Name(), ".") && rel != "."):
			return fs.SkipDir // measurements, and other modules
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		what, checks := judgeLeaks(file)
		if what != "" {
			starts[dir] = what
		}
		looks[dir] = looks[dir] || checks
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, what := range starts {
		if !looks[dir] {
			t.Errorf("the tests of %s have %s, but no check for leaks: add func TestMain(m *testing.M) { leak.Main(m) }", dir, what)
		}
	}
	for _, dir := range []string{"owner", "manager", "lookup", "flease", "server/store/etcd", "lab/tests/e2e"} {
		if starts[dir] == "" || !looks[dir] {
			t.Errorf("%s has no starts or no leak check: this test is defective", dir)
		}
	}
}

// judgeLeaks returns a description of what a file starts, if anything, and whether it checks for leaks.
func judgeLeaks(file *ast.File) (starts string, looks bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = "a go statement"
		case *ast.SelectorExpr:
			from, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			if from.Name == "leak" && (n.Sel.Name == "Main" || n.Sel.Name == "Checked") {
				looks = true
			}
			if slices.Contains(starters[from.Name], n.Sel.Name) {
				starts = "a call of " + from.Name + "." + n.Sel.Name
			}
		case *ast.FuncDecl: // package leak checks for its own leaks
			if n.Name.Name == "TestMain" && file.Name.Name == "leak" {
				looks = true
			}
		}
		return true
	})
	return starts, looks
}

func TestJudgeLeaks(t *testing.T) {
	for source, want := range map[string]struct {
		starts string
		looks  bool
	}{
		"func f() { g() }":                                {"", false},
		"func f() { go g() }":                             {"a go statement", false},
		"func f() { l, _ := net.Listen(a, b); use(l) }":   {"a call of net.Listen", false},
		"func TestMain(m *testing.M) { leak.Main(m) }":    {"", true},
		"func f() int { return leak.Checked{m}.Run() }":   {"", true},
		"func f() { synctest.Test(t, test) }":             {"a call of synctest.Test", false},
		"func f() { owner.Join(ctx, cfg); leak.Main(m) }": {"a call of owner.Join", true},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package p\n"+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if starts, looks := judgeLeaks(file); starts != want.starts || looks != want.looks {
			t.Errorf("%s: %q, %t, want %q, %t", source, starts, looks, want.starts, want.looks)
		}
	}
}
