package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// selector is the file that is added to an instrumented package.
const selector = `package %s

import (
	"os"
	"strconv"
	"sync"
)

var mutantSelected, _ = strconv.Atoi(os.Getenv("MUTANT"))

var mutantSeen sync.Map

func mutantReached(function string) {
	if _, again := mutantSeen.LoadOrStore(function, true); again {
		return
	}
	file, err := os.OpenFile(os.Getenv("MUTANT_REACHED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	_, _ = file.WriteString(function + "\n")
	_ = file.Close()
}
`

// A span is where the copy for a mutant is in an instrumented file.
type span struct {
	from, to int
	mutant   *mutant
}

// instrument returns a file with a copy of each function per mutant that has a number. The lines of the original
// stay where they are.
func instrument(s *source, functions []*function) (text string, spans []span) {
	var originals []edit
	var copies strings.Builder
	for _, f := range functions {
		if !slices.ContainsFunc(f.mutants, func(m *mutant) bool { return m.number > 0 }) {
			continue
		}
		named := f.nameParameters()
		body := f.file.offset(f.decl.Body.Lbrace) + 1
		originals = append(append(originals, named...), edit{body, body, f.dispatch()})
		for _, m := range f.mutants {
			if m.number > 0 {
				from := copies.Len()
				copies.WriteString(f.copy(m, named))
				spans = append(spans, span{from, copies.Len(), m})
			}
		}
	}
	text = apply(s.text, 0, originals) + "\n"
	for i := range spans {
		spans[i].from += len(text)
		spans[i].to += len(text)
	}
	return text + copies.String(), spans
}

// copy returns the function with the change, under another name.
func (f *function) copy(m *mutant, named []edit) string {
	from, to := f.file.offset(f.decl.Pos()), f.file.offset(f.decl.End())
	name := f.file.offset(f.decl.Name.Pos())
	edits := append(slices.Clone(named), m.edit, edit{name, name + len(f.decl.Name.Name), f.copyName(m)})
	return "\n" + apply(f.file.text[from:to], from, edits) + "\n"
}

func (*function) copyName(m *mutant) string { return fmt.Sprintf("mutant%d", m.number) }

// apply applies edits, which do not overlap, to a text that begins at an offset.
func apply(text string, offset int, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.from-offset] + e.text)
		at = e.to - offset
	}
	return b.String() + text[at:]
}

// dispatch returns the statements that call the selected copy.
func (f *function) dispatch() string {
	var b strings.Builder
	fmt.Fprintf(&b, " switch mutantSelected { case -1: mutantReached(%q); ", f.name)
	for _, m := range f.mutants {
		switch call := f.callCopy(m); {
		case m.number == 0:
		case f.decl.Type.Results == nil:
			fmt.Fprintf(&b, "case %d: %s; return; ", m.number, call)
		default:
			fmt.Fprintf(&b, "case %d: return %s; ", m.number, call)
		}
	}
	return b.String() + "};"
}

// callCopy returns the call of the copy for a mutant.
func (f *function) callCopy(m *mutant) string {
	call := f.copyName(m)
	if f.decl.Recv != nil {
		call = parameters(f.decl.Recv, "mutantReceiver")[0] + "." + call
	} else if types := f.decl.Type.TypeParams; types != nil {
		call += "[" + strings.Join(parameters(types, ""), ", ") + "]"
	}
	arguments := strings.Join(parameters(f.decl.Type.Params, "mutantArgument"), ", ")
	if list := f.decl.Type.Params.List; len(list) > 0 {
		if _, variadic := list[len(list)-1].Type.(*ast.Ellipsis); variadic {
			arguments += "..."
		}
	}
	return call + "(" + arguments + ")"
}

// parameters returns the names of parameters. Those without a name get one.
func parameters(fields *ast.FieldList, prefix string) (names []string) {
	for _, field := range fields.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
			if name.Name == "_" {
				names[len(names)-1] = fmt.Sprint(prefix, len(names))
			}
		}
		if len(field.Names) == 0 {
			names = append(names, fmt.Sprint(prefix, len(names)+1))
		}
	}
	return names
}

// nameParameters returns the edits that give every parameter a name.
func (f *function) nameParameters() (edits []edit) {
	name := func(fields *ast.FieldList, prefix string) {
		if fields == nil {
			return
		}
		names := parameters(fields, prefix)
		for _, field := range fields.List {
			if len(field.Names) == 0 {
				at := f.file.offset(field.Type.Pos())
				edits = append(edits, edit{at, at, names[0] + " "})
				names = names[1:]
			}
			for _, n := range field.Names {
				at := f.file.offset(n.Pos())
				if n.Name == "_" {
					edits = append(edits, edit{at, at + 1, names[0]})
				}
				names = names[1:]
			}
		}
	}
	name(f.decl.Recv, "mutantReceiver")
	name(f.decl.Type.Params, "mutantArgument")
	return edits
}
