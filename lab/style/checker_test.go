package style

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// forbiddenImports are packages that a pure package must not import, with the reason. An entry that ends in
// "/..." includes all packages below it.
var forbiddenImports = map[string]string{
	"C":                "a machine is only Go",
	"context":          "cancellation is the responsibility of the shell",
	"crypto/rand":      "randomness is an argument",
	"expvar":           "metrics are the responsibility of the shell",
	"flag":             "configuration is an argument",
	"hash/maphash":     "it differs from process to process",
	"log/...":          "a machine does not log",
	"math/rand":        "use a seeded source of math/rand/v2 that was passed in",
	"net/...":          "a machine has no network",
	"os/...":           "a machine has no operating system",
	"plugin":           "a machine is only Go",
	"runtime/...":      "a machine does not use its runtime",
	"sync/...":         "a machine runs on one goroutine",
	"syscall":          "a machine has no operating system",
	"testing/...":      "no test seam in production code",
	"unsafe":           "a machine is plain Go",
	"golang.org/x/...": "a machine is built on the standard library",
}

// forbiddenNames are identifiers of allowed packages that a pure package must not use, with the reason.
var forbiddenNames = map[string]map[string]string{
	"time": {
		"Now": readsClock, "Since": readsClock, "Until": readsClock,
		"Sleep": ownsTimer, "After": ownsTimer, "Tick": ownsTimer, "NewTimer": ownsTimer,
		"NewTicker": ownsTimer, "AfterFunc": ownsTimer, "Timer": ownsTimer, "Ticker": ownsTimer,
		"Local": "it differs from machine to machine", "LoadLocation": "it reads files",
	},
	"fmt": {
		"Print": printing, "Printf": printing, "Println": printing,
		"Scan": printing, "Scanf": printing, "Scanln": printing,
	},
}

const (
	readsClock = "time is an argument"
	ownsTimer  = "a machine returns its next wake"
	printing   = "a machine has no terminal"
)

// seededRandom are the identifiers of math/rand/v2 that a pure package may use: types and constructors of
// seeded sources. All others use a source that the whole process shares.
var seededRandom = []string{"ChaCha8", "New", "NewChaCha8", "NewPCG", "PCG", "Rand", "Source"}

// readers are functions that may receive a table, because they only read.
var readers = map[string][]string{
	"builtin": {"append", "cap", "len"},
	"slices": {
		"All", "BinarySearch", "BinarySearchFunc", "Clone", "Contains", "ContainsFunc", "Equal",
		"Index", "IndexFunc", "Max", "Min", "Sorted", "Values",
	},
	"maps": {"All", "Clone", "Keys", "Values"},
}

// impurities returns the violations of a package, as lines of "file:line: violation", in order. Its input is
// source text, file name to content: it also works for a package that does not compile.
//
// A package-level variable is allowed if it is one of these, and nothing in the package changes it or takes
// its address:
//
//   - an error made by errors.New or an Errorf;
//   - a table: not exported, a composite literal without pointers;
//   - one in exceptions.
func impurities(files map[string]string, exceptions ...string) []string {
	c := &checker{
		fset:       token.NewFileSet(),
		exceptions: exceptions,
		info: types.Info{
			Defs:       make(map[*ast.Ident]types.Object),
			Uses:       make(map[*ast.Ident]types.Object),
			Types:      make(map[ast.Expr]types.TypeAndValue),
			Selections: make(map[*ast.SelectorExpr]*types.Selection),
		},
	}
	var parsed []*ast.File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, err := parser.ParseFile(c.fset, name, files[name], parser.SkipObjectResolution)
		if err != nil {
			return []string{"does not parse: " + err.Error()}
		}
		parsed = append(parsed, file)
	}
	// The types resolve names: which "time" is the package and which a local variable. Imports are empty
	// stand-ins, so type checking has errors, which are ignored.
	config := types.Config{Importer: standIns{}, Error: func(error) {}}
	c.pkg, _ = config.Check("judged", c.fset, parsed, &c.info)
	for _, file := range parsed {
		c.file(file)
	}
	slices.SortStableFunc(c.violations, func(a, b violation) int {
		return cmp.Or(cmp.Compare(a.at.Filename, b.at.Filename), cmp.Compare(a.at.Line, b.at.Line))
	})
	var lines []string
	for _, s := range c.violations {
		lines = append(lines, fmt.Sprintf("%s:%d: %s", s.at.Filename, s.at.Line, s.what))
	}
	return lines
}

// standIns imports every package as an empty one with the right name.
type standIns struct{}

func (standIns) Import(importPath string) (*types.Package, error) {
	name := path.Base(importPath)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(importPath)) // math/rand/v2 is package rand
	}
	p := types.NewPackage(importPath, name)
	p.MarkComplete()
	return p, nil
}

type violation struct {
	at   token.Position
	what string
}

type checker struct {
	fset       *token.FileSet
	exceptions []string
	info       types.Info
	pkg        *types.Package
	violations []violation
}

func (c *checker) report(n ast.Node, format string, args ...any) {
	c.violations = append(c.violations, violation{c.fset.Position(n.Pos()), fmt.Sprintf(format, args...)})
}

func (c *checker) file(file *ast.File) {
	for _, spec := range file.Imports {
		c.importSpec(spec)
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				c.packageVars(d)
			}
		case *ast.FuncDecl:
			if d.Name.Name == "init" && d.Recv == nil {
				c.report(d, "func init: pass everything at construction")
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		c.node(n)
		return true
	})
}

func (c *checker) importSpec(spec *ast.ImportSpec) {
	imported, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		c.report(spec, "import %s: %v", spec.Path.Value, err)
		return
	}
	if spec.Name != nil && (spec.Name.Name == "." || spec.Name.Name == "_") {
		c.report(spec, "import %s %q: it hides the use of the package", spec.Name.Name, imported)
	}
	for forbidden, why := range forbiddenImports {
		tree, isTree := strings.CutSuffix(forbidden, "/...")
		if imported == tree || isTree && strings.HasPrefix(imported, tree+"/") {
			c.report(spec, "import %q: %s", imported, why)
		}
	}
}

func (c *checker) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.report(n, "go statement: a machine runs on one goroutine")
	case *ast.SelectStmt:
		c.report(n, "select statement: a machine has no channels")
	case *ast.ChanType:
		c.report(n, "channel type: a machine has no channels")
	case *ast.SendStmt:
		c.report(n, "channel send: a machine has no channels")
	case *ast.SelectorExpr:
		c.selector(n)
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, target := range n.Lhs {
				c.changes(target, "assigned to")
			}
		}
	case *ast.IncDecStmt:
		c.changes(n.X, "assigned to")
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			c.changes(n.Key, "assigned to")
			c.changes(n.Value, "assigned to")
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			c.changes(n.X, "has its address taken")
		}
		if n.Op == token.ARROW {
			c.report(n, "channel receive: a machine has no channels")
		}
	case *ast.CallExpr:
		c.call(n)
	}
}

// selector checks pkg.Name, and methods that may change a package's variable.
func (c *checker) selector(n *ast.SelectorExpr) {
	if imported := c.importedBy(n.X); imported != "" {
		if why, bad := forbiddenNames[imported][n.Sel.Name]; bad {
			c.report(n, "%s.%s: %s", path.Base(imported), n.Sel.Name, why)
		}
		if imported == "math/rand/v2" && !slices.Contains(seededRandom, n.Sel.Name) {
			c.report(n, "rand.%s: it uses a source that the whole process shares", n.Sel.Name)
		}
		return
	}
	method, ok := c.info.Selections[n]
	if !ok || method.Kind() != types.MethodVal {
		return
	}
	if signature, ok := method.Obj().Type().(*types.Signature); ok {
		if _, byPointer := signature.Recv().Type().(*types.Pointer); byPointer {
			c.changes(n.X, "has a method called that may change it")
		}
	}
}

func (c *checker) call(n *ast.CallExpr) {
	home, name := "", ""
	switch fun := ast.Unparen(n.Fun).(type) {
	case *ast.Ident:
		name = fun.Name
		if _, ok := c.info.Uses[fun].(*types.Builtin); ok {
			home = "builtin"
		}
	case *ast.SelectorExpr:
		home, name = c.importedBy(fun.X), fun.Sel.Name
	}
	if home == "builtin" && (name == "print" || name == "println") {
		c.report(n, "%s: %s", name, printing)
	}
	if slices.Contains(readers[home], name) {
		return
	}
	for _, arg := range n.Args {
		if v := c.packageVar(arg); v != nil && sharesMemory(v.Type()) {
			c.changes(arg, "is passed to "+types.ExprString(n.Fun)+", which may change it")
		}
	}
}

// sharesMemory reports whether a copy of a value of type t can change the
// original.
func sharesMemory(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Slice, *types.Map, *types.Pointer:
		return true
	}
	return false
}

// importedBy returns the path of the package that x names, or "".
func (c *checker) importedBy(x ast.Expr) string {
	id, ok := ast.Unparen(x).(*ast.Ident)
	if !ok {
		return ""
	}
	if name, ok := c.info.Uses[id].(*types.PkgName); ok {
		return name.Imported().Path()
	}
	return ""
}

// packageVar returns the package-level variable that x names, or nil.
func (c *checker) packageVar(x ast.Expr) *types.Var {
	id, ok := ast.Unparen(x).(*ast.Ident)
	if !ok {
		return nil
	}
	if v, ok := c.info.Uses[id].(*types.Var); ok && v.Parent() == c.pkg.Scope() {
		return v
	}
	return nil
}

// changes reports x if it is a package-level variable, or a part of one, of this package or another.
func (c *checker) changes(x ast.Expr, how string) {
	for x != nil {
		if v := c.packageVar(x); v != nil {
			c.report(x, "package variable %s %s", v.Name(), how)
			return
		}
		switch inner := ast.Unparen(x).(type) {
		case *ast.IndexExpr:
			x = inner.X
		case *ast.SliceExpr:
			x = inner.X
		case *ast.StarExpr:
			x = inner.X
		case *ast.SelectorExpr:
			if imported := c.importedBy(inner.X); imported != "" {
				c.report(x, "package variable %s.%s %s", path.Base(imported), inner.Sel.Name, how)
				return
			}
			x = inner.X
		default:
			return
		}
	}
}

func (c *checker) packageVars(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		values := spec.(*ast.ValueSpec)
		for i, name := range values.Names {
			if name.Name == "_" || slices.Contains(c.exceptions, name.Name) {
				continue
			}
			if len(values.Values) != len(values.Names) {
				c.report(name, "package variable %s: no state outlives a machine", name.Name)
				continue
			}
			value := values.Values[i]
			if c.isErrorSentinel(value) || isTable(value) && !name.IsExported() {
				continue
			}
			c.report(name, "package variable %s: neither an error nor an unexported table", name.Name)
		}
	}
}

func (c *checker) isErrorSentinel(value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	if !ok {
		return false
	}
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name == "Errorf"
	case *ast.SelectorExpr:
		return fun.Sel.Name == "Errorf" || c.importedBy(fun.X) == "errors" && fun.Sel.Name == "New"
	}
	return false
}

// isTable reports whether value is a composite literal without pointers.
func isTable(value ast.Expr) bool {
	if _, ok := value.(*ast.CompositeLit); !ok {
		return false
	}
	table := true
	ast.Inspect(value, func(n ast.Node) bool {
		if u, ok := n.(*ast.UnaryExpr); ok && u.Op == token.AND {
			table = false
		}
		return table
	})
	return table
}
