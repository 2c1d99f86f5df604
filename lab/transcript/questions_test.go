package transcript

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// question executes a query, and changes nothing.
func (w *world) question(verb string, args []string) error {
	switch {
	case verb == "show" && len(args) > 0:
		return w.show(args)
	case verb == "check" && len(args) == 1:
		return w.checkAll(args[0])
	case verb == "write" && len(args) == 2 || verb == "read" && len(args) == 1:
		return w.call(verb, args)
	case len(args) < 2:
		return errUsage
	}
	p, err := w.process(args[0])
	if err != nil {
		return err
	}
	k, err := w.keyOf(args[1])
	if err != nil {
		return err
	}
	switch p := p.(type) {
	case *lookup:
		if verb == "find" {
			w.say("%s sends requests for %s to %s", p.name, args[1], p.where(k))
			return nil
		}
	case *owner:
		if verb == "check" {
			w.say("%s", p.check(k))
			return nil
		}
		if verb == "held" && len(args) == 3 {
			return p.held(k, args[2])
		}
	}
	return errUsage
}

func (w *world) checkAll(unit string) error {
	k, err := w.keyOf(unit)
	if err != nil {
		return err
	}
	for _, p := range w.processes {
		if o, ok := p.(*owner); ok && o.alive {
			w.say("%s", o.check(k))
		}
	}
	return nil
}

func (o *owner) check(k leasehold.Key) string {
	if l, ok := o.view.Check(o.local(), k); ok {
		return fmt.Sprintf("%s: yes, under generation %d", o.name, l.Generation)
	}
	return o.name + ": no"
}

func (o *owner) held(k leasehold.Key, generation string) error {
	g, err := strconv.ParseUint(strings.TrimPrefix(generation, "@"), 10, 64)
	if err != nil {
		return err
	}
	if o.view.Held(o.local(), k, leasehold.Generation(g)) {
		o.say("yes: %s has held it without a gap", o.name)
	} else {
		o.say("no: %s does not hold it under generation %d any more", o.name, g)
	}
	return nil
}

func (w *world) show(args []string) error {
	switch what := args[0]; what {
	case storeName:
		w.store.show()
	case "messages":
		for _, m := range w.underWay {
			w.say("%s %s", m.link(), w.quote(m))
		}
	case "table":
		for _, p := range w.processes {
			if m, ok := p.(*manager); ok && m.alive && m.node.Manager(namespace) != nil {
				m.show()
				return nil
			}
		}
		return errors.New("no leader")
	default:
		p, err := w.process(what)
		if err != nil {
			return err
		}
		p.show()
	}
	return nil
}

// call executes a caller's write or read of the first key of a unit, at the owner that serves it.
func (w *world) call(verb string, args []string) error {
	k, err := w.keyOf(args[0])
	if err != nil {
		return err
	}
	for _, p := range w.processes {
		o, ok := p.(*owner)
		if !ok || !o.valid() {
			continue
		}
		l, ok := o.view.Check(o.local(), k)
		if !ok {
			continue
		}
		if verb == "write" {
			o.state[k] = value{args[1], l.Generation}
			w.say("%s writes %s under generation %d", o.name, args[1], l.Generation)
			return nil
		}
		if v := o.state[k]; v.generation == l.Generation {
			w.say("%s has %s", o.name, v.text)
		} else {
			w.say("%s has nothing", o.name)
		}
		return nil
	}
	w.say("no owner serves it")
	return nil
}
