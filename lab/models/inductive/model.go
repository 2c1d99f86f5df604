package inductive

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A model is a transition system with an invariant; lease.smt describes its forms.
type model struct {
	sorts      []string
	constants  []expr // name and sort
	assumed    []expr
	states     []expr // name, sorts of the arguments, sort of the result
	defined    map[string]expr
	initial    []expr
	conjuncts  []named
	properties []named
	actions    []action
	before     map[string][]named // by action
	walks      []walk
	mutants    []mutant
}

type named struct {
	name string
	expr
}

// An action is one step: conditions, and updates of state variables at one place each.
type action struct {
	name   string
	params []expr
	when   []expr
	sets   []expr
}

// A walk is actions from the first state, after which goal can hold.
type walk struct {
	name    string
	actions []action
	goal    expr
}

// A mutant replaces a rule.
type mutant struct {
	name, rule string
	by         expr
}

func read(text string) (*model, error) {
	forms, err := parse(text)
	if err != nil {
		return nil, err
	}
	m := &model{defined: make(map[string]expr), before: make(map[string][]named)}
	for _, f := range forms {
		switch args := f.list[1:]; f.list[0].atom {
		case "sort":
			m.sorts = append(m.sorts, args[0].atom)
		case "const":
			m.constants = append(m.constants, list(args...))
		case "assume":
			m.assumed = append(m.assumed, args[0])
		case "state":
			m.states = append(m.states, list(args...))
		case "define":
			m.defined[args[0].atom] = f
		case "init":
			m.initial = append(m.initial, args[0])
		case "conjunct":
			m.conjuncts = append(m.conjuncts, named{args[0].atom, args[1]})
		case "property":
			m.properties = append(m.properties, named{args[0].atom, args[1]})
		case "action":
			a := action{name: args[0].atom, params: args[1].list}
			for _, e := range args[2:] {
				if e.is("set") {
					a.sets = append(a.sets, e)
				} else {
					a.when = append(a.when, e)
				}
			}
			m.actions = append(m.actions, a)
		case "before":
			m.before[args[0].atom] = append(m.before[args[0].atom], named{args[1].atom, args[2]})
		case "walk":
			w := walk{name: args[0].atom, goal: args[2]}
			for _, name := range args[1].list {
				i := slices.IndexFunc(m.actions, func(a action) bool { return a.name == name.atom })
				if i < 0 {
					return nil, fmt.Errorf("walk %s: there is no action %v", w.name, name)
				}
				w.actions = append(w.actions, m.actions[i])
			}
			m.walks = append(m.walks, w)
		case "mutant":
			m.mutants = append(m.mutants, mutant{args[0].atom, args[1].atom, args[2]})
		default:
			return nil, fmt.Errorf("unknown form %v", f)
		}
	}
	return m, nil
}

// expand replaces abbreviations, and rules by their expressions or by a mutant's.
func (m *model) expand(e expr, mut mutant) expr {
	if e.is("rule") {
		if e.list[1].atom == mut.rule {
			return m.expand(mut.by, mut)
		}
		return m.expand(e.list[2], mut)
	}
	name := e.atom
	if len(e.list) > 0 {
		name = e.list[0].atom
	}
	d, found := m.defined[name]
	if !found {
		return e.mapped(func(p expr) expr { return m.expand(p, mut) })
	}
	args := make(map[string]expr)
	for i, p := range d.list[2].list {
		args[p.list[0].atom] = m.expand(e.list[i+1], mut)
	}
	return m.expand(d.list[3], mut).with(args)
}

// A query is a text for z3 about a state, or about several states after one another.
type query struct {
	strings.Builder
	*model
	mut mutant
	// limit is the bound of all numbers and of sessions in a search; 0 if there is none.
	limit int
	steps int
	// current has the name of each state variable that a step has changed, in the newest state.
	current map[string]expr
	claims  []named
}

func (m *model) query(mut mutant, limit int) *query {
	q := &query{model: m, mut: mut, limit: limit, current: make(map[string]expr)}
	for _, s := range m.sorts {
		if limit == 0 {
			q.print("(declare-sort %s 0)", s)
			continue
		}
		elements := make([]string, limit)
		for i := range elements {
			elements[i] = "(" + s + strconv.Itoa(i) + ")"
		}
		q.print("(declare-datatypes ((%s 0)) ((%s)))", s, strings.Join(elements, " "))
	}
	for _, c := range m.constants {
		q.print("(declare-const %v %v)", c.list[0], c.list[1])
	}
	for _, e := range m.assumed {
		q.assert(e)
	}
	for _, s := range m.states {
		n := len(s.list) - 1
		q.print("(declare-fun %v %v %v)", s.list[0], list(s.list[1:n]...), s.list[n])
	}
	return q
}

func (q *query) print(format string, args ...any) { fmt.Fprintf(q, format+"\n", args...) }

// formula returns e about the newest state. Its parameters have these names.
func (q *query) formula(e expr, params map[string]expr) expr {
	return q.closed(q.expand(e, q.mut)).with(params).with(q.current)
}

func (q *query) assert(e expr) { q.print("(assert %v)", q.formula(e, nil)) }

// claim adds claims about the newest state.
func (q *query) claim(all []named) {
	for _, c := range all {
		q.claims = append(q.claims, named{c.name, q.formula(c.expr, nil)})
	}
}

// closed returns e without quantifiers if the numbers are bounded.
func (q *query) closed(e expr) expr {
	if q.limit == 0 || !e.is("forall") {
		return e.mapped(q.closed)
	}
	all := []expr{e.list[2]}
	for _, v := range e.list[1].list {
		var next []expr
		for _, value := range q.values(v.list[1].atom) {
			for _, body := range all {
				next = append(next, body.with(map[string]expr{v.list[0].atom: value}))
			}
		}
		all = next
	}
	return list(append([]expr{atom("and")}, all...)...).mapped(q.closed)
}

// values returns the values of a bounded sort. Numbers go one further than in the state before the step.
func (q *query) values(sort string) (all []expr) {
	if sort == "Int" {
		for i := range q.limit + 2 {
			all = append(all, atom(strconv.Itoa(i)))
		}
		return all
	}
	for i := range q.limit {
		all = append(all, atom(sort+strconv.Itoa(i)))
	}
	return all
}

func (q *query) invariant() {
	for _, c := range q.conjuncts {
		q.assert(c.expr)
	}
	if q.limit > 0 {
		q.bound()
	}
}

// bound bounds all terms, generations, and numbers of messages and requests.
func (q *query) bound() {
	for _, s := range q.states {
		n := len(s.list) - 1
		if s.list[n].atom != "Int" {
			continue
		}
		params, value := signature(s)
		e := list(atom("<="), atom("0"), value, atom(strconv.Itoa(q.limit)))
		if n > 1 {
			e = list(atom("forall"), params, e)
		}
		q.assert(e)
	}
}

// signature returns the parameters of a state variable, and its value for them.
func signature(state expr) (params, value expr) {
	n := len(state.list) - 1
	call := []expr{state.list[0]}
	for i, sort := range state.list[1:n] {
		v := atom("v" + strconv.Itoa(i))
		params.list, call = append(params.list, list(v, sort)), append(call, v)
	}
	if n == 1 {
		return params, state.list[0]
	}
	return params, list(call...)
}

// step adds an action: its conditions, the claims before it, and the state after it.
func (q *query) step(a action) {
	q.steps++
	here := make(map[string]expr)
	for _, p := range a.params {
		name := atom(fmt.Sprintf("%v.%d", p.list[0], q.steps))
		here[p.list[0].atom] = name
		q.print("(declare-const %v %v)", name, p.list[1])
	}
	for _, e := range a.when {
		q.print("(assert %v)", q.formula(e, here))
	}
	q.claim(q.before[a.name])
	next := maps.Clone(q.current)
	for _, s := range q.states {
		name := s.list[0].atom
		params, value := signature(s)
		value = value.with(q.current)
		changed := false
		for _, set := range a.sets {
			place, to := set.list[1].list, q.formula(set.list[2], here)
			if place[0].atom != name {
				continue
			}
			at := []expr{atom("and"), atom("true")}
			for i, index := range place[1:] {
				at = append(at, list(atom("="), params.list[i].list[0], q.formula(index, here)))
			}
			changed, value = true, list(atom("ite"), list(at...), to, value)
		}
		if changed {
			next[name] = atom(fmt.Sprintf("%s.%d", name, q.steps))
			q.print("(define-fun %v %v %v %v)", next[name], params, s.list[len(s.list)-1], value)
		}
	}
	q.current = next
}

// mutated returns the actions that have a rule.
func (m *model) mutated(rule string) (found []action) {
	var has func(expr) bool
	has = func(e expr) bool {
		return e.is("rule") && e.list[1].atom == rule || slices.ContainsFunc(e.list, has)
	}
	for _, a := range m.actions {
		if slices.ContainsFunc(a.when, has) || slices.ContainsFunc(a.sets, has) {
			found = append(found, a)
		}
	}
	return found
}
