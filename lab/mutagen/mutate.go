package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// A mutant is one change of a function.
type mutant struct {
	function *function
	operator string // such as "delete"
	change   string // what is replaced, and by what
	line     int
	edit     edit
	number   int // in the instrumented package; 0: does not compile
}

// id names the mutant without line numbers, so that it stays the same when other code changes.
func (m mutant) id() string { return m.function.name + ": " + m.operator + ": " + m.change }

// An edit replaces a part of a file.
type edit struct {
	from, to int // offsets
	text     string
}

// A function is a function or method with its mutants.
type function struct {
	name    string // such as "Set.Add"
	file    *source
	decl    *ast.FuncDecl
	mutants []*mutant
}

// text returns the source of the function.
func (f *function) text() string { return f.file.slice(f.decl.Pos(), f.decl.End()) }

// A source is a file of the package.
type source struct {
	path string // relative to the root
	fset *token.FileSet
	text string
	ast  *ast.File
}

func (s *source) offset(p token.Pos) int          { return s.fset.Position(p).Offset }
func (s *source) slice(from, to token.Pos) string { return s.text[s.offset(from):s.offset(to)] }

// functions returns the functions of a file, with their mutants.
func (s *source) functions() (all []*function) {
	for _, d := range s.ast.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok || d.Body == nil || d.Name.Name == "init" || d.Name.Name == "_" {
			continue
		}
		f := &function{name: receiver(d) + d.Name.Name, file: s, decl: d}
		ast.Inspect(d.Body, f.visit)
		f.number()
		all = append(all, f)
	}
	return all
}

// receiver returns the type of a method with a dot.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	for t := d.Recv.List[0].Type; ; {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		default:
			return t.(*ast.Ident).Name + "."
		}
	}
}

// number distinguishes equal changes of a function.
func (f *function) number() {
	seen := make(map[string]int)
	for _, m := range f.mutants {
		id := m.id()
		if seen[id]++; seen[id] > 1 {
			m.change += fmt.Sprintf(" (%d)", seen[id])
		}
	}
}

// unobserved matches calls that tests need not observe: logs, texts of errors, failpoints, and assertions, which
// fail only if another bug exists.
var unobserved = regexp.MustCompile(`^((\w+\.)*(log|logger|Log|Logger|slog|failpoint)\.\w+(\(.*\)\.\w+)*|panic|(\w+\.)?(Errorf|bad|refuse)|errors\.New|fmt\.S?[Pp]rintf?)$`)

func (f *function) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		if unobserved.MatchString(f.source(n.Fun)) {
			return false
		}
		f.swapArguments(n)
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && unobserved.MatchString(f.source(call.Fun)) {
			return false
		}
		f.remove(n)
	case *ast.IfStmt:
		f.branch(n)
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.AssignStmt:
		f.assign(n)
	case *ast.BasicLit:
		if n.Kind == token.INT {
			f.replace("off by one", n, "("+n.Value+" + 1)")
		}
	case *ast.Ident:
		if other, ok := map[string]string{"true": "false", "false": "true"}[n.Name]; ok {
			f.replace("flip", n, other)
		}
	case *ast.CompositeLit:
		f.fields(n)
	case *ast.ReturnStmt:
		if len(n.Results) == 0 {
			f.remove(n)
		}
	case *ast.CommClause:
		f.remove(n)
		for _, statement := range n.Body {
			ast.Inspect(statement, f.visit)
		}
		return false // a case without its communication is no Go
	case *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt, *ast.BranchStmt, *ast.ForStmt, *ast.RangeStmt, *ast.CaseClause:
		f.remove(n)
	}
	return true
}

func (f *function) source(n ast.Node) string { return f.file.slice(n.Pos(), n.End()) }

func (f *function) replace(operator string, n ast.Node, by string) {
	f.add(operator, n.Pos(), n.End(), by)
}

func (f *function) remove(n ast.Node) { f.replace("delete", n, "") }

func (f *function) add(operator string, from, to token.Pos, by string) {
	text := f.file.slice(from, to)
	if strings.Contains(text, "failpoint.") {
		return
	}
	change := brief(text)
	if by != "" {
		change += " => " + brief(by)
	}
	f.mutants = append(f.mutants, &mutant{
		function: f, operator: operator, change: change, line: f.file.fset.Position(from).Line,
		edit: edit{f.file.offset(from), f.file.offset(to), by},
	})
}

// brief returns a text on one line, cut where it is long.
func brief(text string) string {
	const most = 110
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

func (f *function) swapArguments(n *ast.CallExpr) {
	name := f.source(n.Fun)
	switch name {
	case "min":
		f.replace("compare", n.Fun, "max")
	case "max":
		f.replace("compare", n.Fun, "min")
	case "make": // the capacity has no effect
		return
	}
	for i := 1; i < len(n.Args); i++ {
		a, b := f.source(n.Args[i-1]), f.source(n.Args[i])
		if a != b && !n.Ellipsis.IsValid() && name != "min" && name != "max" {
			f.add("swap", n.Args[i-1].Pos(), n.Args[i].End(), b+", "+a)
		}
	}
}

func (f *function) branch(n *ast.IfStmt) {
	if b, ok := n.Cond.(*ast.BinaryExpr); !ok || !b.Op.IsOperator() || b.Op != token.EQL && b.Op != token.NEQ {
		f.replace("negate", n.Cond, "!("+f.source(n.Cond)+")")
	}
	if n.Else != nil {
		f.add("delete", n.Body.End(), n.Else.End(), "")
		return
	}
	f.replace("delete", n, "{}")
}

// comparisons has the operator that replaces each.
var comparisons = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
}

var arithmetic = map[token.Token]string{
	token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "*",
	token.AND: "|", token.OR: "&", token.SHL: ">>", token.SHR: "<<",
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.OR_ASSIGN: "&=", token.AND_ASSIGN: "|=",
}

func (f *function) binary(n *ast.BinaryExpr) {
	x, y := f.source(n.X), f.source(n.Y)
	switch by := comparisons[n.Op]; {
	case by != "":
		f.replace("compare", n, x+" "+by+" "+y)
	case n.Op == token.LAND || n.Op == token.LOR:
		f.replace("drop operand", n, x)
		if left, ok := n.X.(*ast.BinaryExpr); !ok || left.Op != n.Op {
			f.replace("drop operand", n, y)
		}
	case arithmetic[n.Op] != "":
		f.replace("arithmetic", n, x+" "+arithmetic[n.Op]+" "+y)
	}
}

func (f *function) assign(n *ast.AssignStmt) {
	if by := arithmetic[n.Tok]; by != "" {
		f.replace("arithmetic", n, f.source(n.Lhs[0])+" "+by+" "+f.source(n.Rhs[0]))
	}
	if n.Tok != token.DEFINE {
		f.remove(n)
	}
}

// fields deletes fields of a struct literal.
func (f *function) fields(n *ast.CompositeLit) {
	for i, e := range n.Elts {
		if _, ok := e.(*ast.KeyValueExpr); !ok {
			continue
		}
		to := n.Rbrace
		if i+1 < len(n.Elts) {
			to = n.Elts[i+1].Pos()
		}
		f.add("delete", e.Pos(), to, "")
	}
}
