package image

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"unsafe"
)

type copier struct{ seen []twin }

// A twin is a value that has been copied, and its copy.
type twin struct{ old, young unsafe.Pointer }

func (c *copier) find(old unsafe.Pointer) (unsafe.Pointer, bool) {
	for i := range c.seen {
		if c.seen[i].old == old {
			return c.seen[i].young, true
		}
	}
	return nil, false
}

type writer struct {
	out   []byte
	names Names
	seen  []unsafe.Pointer
}

func (w *writer) number(n uint64) { w.out = binary.AppendUvarint(w.out, n) }

func (w *writer) text(s string) {
	w.number(uint64(len(s)))
	w.out = append(w.out, s...)
}

// Names appends the name of a process in a description to b: the permuted name. A nil Names does not change
// names.
type Names func(b, name []byte) []byte

// Copy returns a copy of the value at p.
func Copy[T any](k *Kit, p *T) *T {
	k.copier.seen = k.copier.seen[:0]
	var out *T
	k.plan(reflect.TypeFor[*T]()).copy(&k.copier, unsafe.Pointer(&out), unsafe.Pointer(&p))
	clear(k.copier.seen)
	return out
}

// Append appends a description of the value at p. Values with equal descriptions behave the same.
func Append[T any](k *Kit, b []byte, p *T, names Names) []byte {
	w := &k.writer
	w.out, w.names, w.seen = b, names, w.seen[:0]
	k.plan(reflect.TypeFor[T]()).write(w, unsafe.Pointer(p))
	clear(w.seen)
	out := w.out
	w.out = nil
	return out
}

func (k *Kit) fillName(p *plan) {
	if p.typ.Kind() == reflect.String {
		p.write = func(w *writer, at unsafe.Pointer) {
			s := *(*string)(at)
			w.name(unsafe.Slice(unsafe.StringData(s), len(s)))
		}
		return
	}
	p.write = func(w *writer, at unsafe.Pointer) { w.name(unsafe.Slice((*byte)(at), p.size)) }
}

func (w *writer) name(name []byte) {
	if w.names == nil {
		w.out = append(w.out, name...)
	} else {
		w.out = w.names(w.out, name)
	}
	w.out = append(w.out, 0xff)
}

func (k *Kit) fillPointer(p *plan) {
	elem := k.plan(p.typ.Elem())
	if k.shared(p.typ) {
		p.copy = copyWord
		p.write = func(w *writer, at unsafe.Pointer) { // without a number for back references
			if target := *(*unsafe.Pointer)(at); target != nil {
				w.out = append(w.out, 1)
				elem.write(w, target)
			} else {
				w.out = append(w.out, 0)
			}
		}
		return
	}
	p.copy = func(c *copier, to, from unsafe.Pointer) {
		old := *(*unsafe.Pointer)(from)
		if old == nil {
			return
		}
		young, known := c.find(old)
		if !known {
			young = reflect.New(elem.typ).UnsafePointer()
			c.seen = append(c.seen, twin{old, young})
			elem.copy(c, young, old)
		}
		*(*unsafe.Pointer)(to) = young
	}
	p.write = func(w *writer, at unsafe.Pointer) {
		target := *(*unsafe.Pointer)(at)
		if target == nil {
			w.out = append(w.out, 0)
			return
		}
		if i := slices.Index(w.seen, target); i >= 0 {
			w.number(uint64(i) + 2)
			return
		}
		w.seen = append(w.seen, target)
		w.out = append(w.out, 1)
		elem.write(w, target)
	}
}

// slice is the layout of a slice in memory.
type slice struct {
	data unsafe.Pointer
	len  int
	cap  int
}

func (k *Kit) fillSlice(p *plan) {
	elem := k.plan(p.typ.Elem())
	if k.shared(p.typ) {
		p.copy = func(_ *copier, to, from unsafe.Pointer) {
			s := *(*slice)(from)
			s.cap = s.len // an append reallocates
			*(*slice)(to) = s
		}
	} else {
		p.copy = func(c *copier, to, from unsafe.Pointer) {
			s := *(*slice)(from)
			if s.data == nil {
				return
			}
			young := reflect.MakeSlice(p.typ, s.len, s.len).UnsafePointer()
			if elem.flat {
				copyFlat(young, s.data, uintptr(s.len)*elem.size)
			} else {
				for i := range uintptr(s.len) {
					elem.copy(c, unsafe.Add(young, i*elem.size), unsafe.Add(s.data, i*elem.size))
				}
			}
			*(*slice)(to) = slice{young, s.len, s.len}
		}
	}
	p.write = func(w *writer, at unsafe.Pointer) {
		s := *(*slice)(at)
		w.number(uint64(s.len))
		for i := range uintptr(s.len) {
			elem.write(w, unsafe.Add(s.data, i*elem.size))
		}
	}
	if field, ok := k.rules.Sorted[p.typ.String()]; ok {
		k.fillSorted(p, field)
	}
}

// fillSorted describes a slice of pointers in the order of the names in the description.
func (k *Kit) fillSorted(p *plan, field string) {
	elem := k.plan(p.typ.Elem())
	f, found := p.typ.Elem().Elem().FieldByName(field)
	if !found {
		panic(p.typ.String() + " has no field " + field)
	}
	key := k.plan(f.Type)
	p.write = func(w *writer, at unsafe.Pointer) {
		s := *(*slice)(at)
		w.number(uint64(s.len))
		order := make([]named, s.len)
		for i := range order {
			order[i].at = unsafe.Add(s.data, uintptr(i)*elem.size)
			order[i].name = w.apart(func() { key.write(w, unsafe.Add(*(*unsafe.Pointer)(order[i].at), f.Offset)) })
		}
		slices.SortFunc(order, func(a, b named) int { return bytes.Compare(a.name, b.name) })
		for i := range order {
			elem.write(w, order[i].at)
		}
	}
}

// named is an element of a collection, with its sort key.
type named struct {
	name []byte
	at   unsafe.Pointer
}

// apart returns the description that write writes, instead of appending it.
func (w *writer) apart(write func()) []byte {
	from := len(w.out)
	write()
	part := slices.Clone(w.out[from:])
	w.out = w.out[:from]
	return part
}

func (k *Kit) fillMap(p *plan) {
	key, value := k.plan(p.typ.Key()), k.plan(p.typ.Elem())
	// Maps are iterated by reflection, which is slow: those of machines are small.
	each := func(at unsafe.Pointer, visit func(key, value unsafe.Pointer)) {
		for i := reflect.NewAt(p.typ, at).Elem().MapRange(); i.Next(); {
			k, v := reflect.New(key.typ), reflect.New(value.typ)
			k.Elem().Set(i.Key())
			v.Elem().Set(i.Value())
			visit(k.UnsafePointer(), v.UnsafePointer())
		}
	}
	p.copy = func(c *copier, to, from unsafe.Pointer) {
		if *(*unsafe.Pointer)(from) == nil {
			return
		}
		young := reflect.MakeMap(p.typ)
		each(from, func(k, v unsafe.Pointer) {
			nk, nv := reflect.New(key.typ), reflect.New(value.typ)
			key.copy(c, nk.UnsafePointer(), k)
			value.copy(c, nv.UnsafePointer(), v)
			young.SetMapIndex(nk.Elem(), nv.Elem())
		})
		reflect.NewAt(p.typ, to).Elem().Set(young)
	}
	p.write = func(w *writer, at unsafe.Pointer) {
		var order []named
		if *(*unsafe.Pointer)(at) != nil {
			each(at, func(k, v unsafe.Pointer) {
				order = append(order, named{w.apart(func() { key.write(w, k) }), v})
			})
		}
		slices.SortFunc(order, func(a, b named) int { return bytes.Compare(a.name, b.name) })
		w.number(uint64(len(order)))
		for _, n := range order {
			w.out = append(w.out, n.name...)
			value.write(w, n.at)
		}
	}
}

// fillInterface determines the plan of the dynamic type on each use.
func (k *Kit) fillInterface(p *plan) {
	p.copy = func(c *copier, to, from unsafe.Pointer) {
		old := reflect.NewAt(p.typ, from).Elem()
		if old.IsNil() {
			return
		}
		inside := k.plan(old.Elem().Type())
		o, young := reflect.New(inside.typ), reflect.New(inside.typ)
		o.Elem().Set(old.Elem())
		inside.copy(c, young.UnsafePointer(), o.UnsafePointer())
		reflect.NewAt(p.typ, to).Elem().Set(young.Elem())
	}
	p.write = func(w *writer, at unsafe.Pointer) {
		v := reflect.NewAt(p.typ, at).Elem()
		if v.IsNil() {
			w.out = append(w.out, 0)
			return
		}
		inside := k.plan(v.Elem().Type())
		w.text(inside.typ.String())
		o := reflect.New(inside.typ)
		o.Elem().Set(v.Elem())
		inside.write(w, o.UnsafePointer())
	}
}
