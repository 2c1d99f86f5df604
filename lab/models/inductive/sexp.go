package inductive

import (
	"fmt"
	"strings"
)

// An expr is an S-expression: an atom, or a list.
type expr struct {
	atom string
	list []expr
}

func atom(s string) expr         { return expr{atom: s} }
func list(parts ...expr) expr    { return expr{list: parts} }
func (e expr) is(op string) bool { return len(e.list) > 0 && e.list[0].atom == op }

func (e expr) String() string {
	if e.atom != "" {
		return e.atom
	}
	parts := make([]string, len(e.list))
	for i, p := range e.list {
		parts[i] = p.String()
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// mapped returns e with f applied to each of its parts.
func (e expr) mapped(f func(expr) expr) expr {
	if e.atom != "" {
		return e
	}
	parts := make([]expr, len(e.list))
	for i, p := range e.list {
		parts[i] = f(p)
	}
	return expr{list: parts}
}

// with returns e with names replaced. A name that e binds again is not expected.
func (e expr) with(names map[string]expr) expr {
	if to, found := names[e.atom]; found {
		return to
	}
	return e.mapped(func(p expr) expr { return p.with(names) })
}

// parse returns the S-expressions of a text.
func parse(text string) ([]expr, error) {
	stack := [][]expr{nil}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, ";")
		line = strings.NewReplacer("(", " ( ", ")", " ) ").Replace(line)
		for _, word := range strings.Fields(line) {
			top := len(stack) - 1
			switch word {
			case "(":
				stack = append(stack, nil)
			case ")":
				if top == 0 {
					return nil, fmt.Errorf("line %d: unexpected )", i+1)
				}
				stack[top-1] = append(stack[top-1], expr{list: stack[top]})
				stack = stack[:top]
			default:
				stack[top] = append(stack[top], atom(word))
			}
		}
	}
	if len(stack) > 1 {
		return nil, fmt.Errorf("%d missing )", len(stack)-1)
	}
	return stack[0], nil
}
