package image

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// Rules say what is special about some types. Types are matched by how they print,
// such as "*table.Holder", because most of them are not exported.
type Rules struct {
	// Shared are types whose values never change once they are made: copies
	// share what they point to.
	Shared []reflect.Type
	// Scratch are types of what is of no use after a step: copies do not have it, and
	// descriptions do not, either.
	Scratch []string
	// Ignored are types that decide nothing: they are copied, and not described.
	Ignored []string
	// IgnoredFields are fields, such as "block.own", of that kind.
	IgnoredFields []string
	// Sorted are types of slices that are sorted by a name. They are described in the
	// order that they would have by the names of the description: by what is found at
	// the field with this name.
	Sorted map[string]string
	// Names are types that name a process.
	Names []reflect.Type
}

// A Kit copies and describes values by rules. It remembers plans, and is not safe for
// concurrent use.
type Kit struct {
	rules  Rules
	plans  map[reflect.Type]*plan
	copier copier
	writer writer
}

// NewKit returns a kit that goes by rules.
func NewKit(r Rules) *Kit { return &Kit{rules: r, plans: map[reflect.Type]*plan{}} }

// A plan is what is to be done with values of a type.
type plan struct {
	typ  reflect.Type
	size uintptr
	flat bool // there is no pointer in it
	// copy makes what is at the first place that of the second. The first is zero.
	copy func(c *copier, to, from unsafe.Pointer)
	// write describes what is at a place; nil if it decides nothing.
	write func(w *writer, at unsafe.Pointer)
}

// plan returns the plan of a type. While it is being made it is there already, without
// functions, for types that refer to themselves.
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
	name, _, _ := strings.Cut(t.Name(), "[") // without what a generic type is made for
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
		p.write = func(*writer, unsafe.Pointer) {} // code does not change
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
		panic(fmt.Sprintf("there is no way to copy a %v", p.typ))
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

// fillStruct joins the plans of fields. Neighbours without pointers are copied together.
func (k *Kit) fillStruct(p *plan) {
	type part struct {
		at   uintptr
		size uintptr // of neighbours without pointers; 0 if there is a plan
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
