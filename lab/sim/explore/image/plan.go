package image

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// Rules are the exceptions for some types. Types are given as strings where they are not exported, such as
// "*table.Holder".
type Rules struct {
	// Shared are types of immutable values: copies share what they point to.
	Shared []reflect.Type
	// Scratch are types of values that are not used after a step. They are neither copied nor described.
	Scratch []string
	// Ignored are types that do not affect the future: they are copied, and not described.
	Ignored []string
	// IgnoredFields are fields that do not affect the future, such as "block.own".
	IgnoredFields []string
	// Sorted are slice types that are sorted by a process name, with the field of that name. They are
	// described in the order of the names in the description.
	Sorted map[string]string
	// Names are the types of process names.
	Names []reflect.Type
}

// A Kit copies and describes values by rules. It caches plans, and is not safe for concurrent use.
type Kit struct {
	rules  Rules
	plans  map[reflect.Type]*plan
	copier copier
	writer writer
}

// NewKit returns a kit with rules.
func NewKit(r Rules) *Kit { return &Kit{rules: r, plans: map[reflect.Type]*plan{}} }

// A plan has the functions for values of a type.
type plan struct {
	typ  reflect.Type
	size uintptr
	flat bool // contains no pointer
	// copy copies a value to another location, which must be zero.
	copy func(c *copier, to, from unsafe.Pointer)
	// write describes the value at a location.
	write func(w *writer, at unsafe.Pointer)
}

// plan returns the plan of a type. It adds the plan before its functions are complete, for recursive types.
func (k *Kit) plan(t reflect.Type) *plan {
	if p := k.plans[t]; p != nil {
		return p
	}
	p := &plan{typ: t, size: t.Size()}
	k.plans[t] = p
	scratch := slices.Contains(k.rules.Scratch, t.String())
	if scratch {
		p.copy = func(*copier, unsafe.Pointer, unsafe.Pointer) {}
	} else {
		k.fill(p)
	}
	switch {
	case scratch || slices.Contains(k.rules.Ignored, t.String()):
		p.write = func(*writer, unsafe.Pointer) {}
	case slices.Contains(k.rules.Names, t):
		k.fillName(p)
	}
	if t.Kind() == reflect.Struct && k.shared(t) {
		p.copy = func(_ *copier, to, from unsafe.Pointer) {
			reflect.NewAt(t, to).Elem().Set(reflect.NewAt(t, from).Elem())
		}
	}
	return p
}

func (k *Kit) ignoredField(t reflect.Type, f *reflect.StructField) bool {
	name, _, _ := strings.Cut(t.Name(), "[") // without type arguments
	return slices.Contains(k.rules.IgnoredFields, name+"."+f.Name)
}

func (k *Kit) shared(t reflect.Type) bool { return slices.Contains(k.rules.Shared, t) }

func (k *Kit) fill(p *plan) {
	switch p.typ.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Uint8:
		p.fillFlat(func(w *writer, at unsafe.Pointer) { w.out = append(w.out, *(*byte)(at)) })
	case reflect.Int16, reflect.Uint16:
		p.fillFlat(func(w *writer, at unsafe.Pointer) { w.number(uint64(*(*uint16)(at))) })
	case reflect.Int32, reflect.Uint32, reflect.Float32:
		p.fillFlat(func(w *writer, at unsafe.Pointer) { w.number(uint64(*(*uint32)(at))) })
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64, reflect.Float64, reflect.Uintptr:
		p.fillFlat(func(w *writer, at unsafe.Pointer) { w.number(*(*uint64)(at)) })
	case reflect.String:
		p.copy = func(_ *copier, to, from unsafe.Pointer) { *(*string)(to) = *(*string)(from) }
		p.write = func(w *writer, at unsafe.Pointer) { w.text(*(*string)(at)) }
	case reflect.Func:
		p.copy = copyWord
		p.write = func(*writer, unsafe.Pointer) {} // code is constant
	case reflect.Pointer:
		k.fillPointer(p)
	case reflect.Struct:
		k.fillStruct(p)
	case reflect.Array:
		k.fillArray(p)
	case reflect.Slice:
		k.fillSlice(p)
	case reflect.Map:
		k.fillMap(p)
	case reflect.Interface:
		k.fillInterface(p)
	default:
		panic(fmt.Sprintf("cannot copy a %v", p.typ))
	}
}

func (p *plan) fillFlat(write func(*writer, unsafe.Pointer)) {
	size := p.size
	p.flat, p.write = true, write
	p.copy = func(_ *copier, to, from unsafe.Pointer) { copyFlat(to, from, size) }
}

func copyFlat(to, from unsafe.Pointer, size uintptr) {
	copy(unsafe.Slice((*byte)(to), size), unsafe.Slice((*byte)(from), size))
}

func copyWord(_ *copier, to, from unsafe.Pointer) { *(*unsafe.Pointer)(to) = *(*unsafe.Pointer)(from) }

// fillStruct combines the plans of the fields. Adjacent fields without pointers are copied together.
func (k *Kit) fillStruct(p *plan) {
	type part struct {
		at   uintptr
		size uintptr // of adjacent fields without pointers; 0 if there is a plan
		*plan
	}
	var copies, writes []part
	p.flat = true
	for i := range p.typ.NumField() {
		f := p.typ.Field(i)
		field := k.plan(f.Type)
		if !k.ignoredField(p.typ, &f) {
			writes = append(writes, part{f.Offset, 0, field})
		}
		switch n := len(copies); {
		case field.size == 0:
		case !field.flat:
			p.flat = false
			copies = append(copies, part{f.Offset, 0, field})
		case n > 0 && copies[n-1].size > 0:
			copies[n-1].size = f.Offset + field.size - copies[n-1].at
		default:
			copies = append(copies, part{f.Offset, field.size, field})
		}
	}
	p.copy = func(c *copier, to, from unsafe.Pointer) {
		for i := range copies {
			part := &copies[i]
			to, from := unsafe.Add(to, part.at), unsafe.Add(from, part.at)
			if part.size > 0 {
				copyFlat(to, from, part.size)
			} else {
				part.copy(c, to, from)
			}
		}
	}
	p.write = func(w *writer, at unsafe.Pointer) {
		for i := range writes {
			writes[i].write(w, unsafe.Add(at, writes[i].at))
		}
	}
}

func (k *Kit) fillArray(p *plan) {
	elem, n := k.plan(p.typ.Elem()), uintptr(p.typ.Len())
	p.flat = elem.flat
	p.copy = func(c *copier, to, from unsafe.Pointer) {
		for i := range n {
			elem.copy(c, unsafe.Add(to, i*elem.size), unsafe.Add(from, i*elem.size))
		}
	}
	p.write = func(w *writer, at unsafe.Pointer) {
		for i := range n {
			elem.write(w, unsafe.Add(at, i*elem.size))
		}
	}
}
