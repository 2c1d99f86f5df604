package image

import (
	"reflect"
	"slices"
	"testing"
)

type name string

// place is a stand-in for a machine: it has a field of every kind, all of them unexported.
type place struct {
	out    []action
	n      int
	small  [3]uint8
	yes    bool
	rate   float64
	text   string
	near   *place
	twins  [2]*leaf
	leaves []*leaf
	byName map[name]*leaf
	empty  map[int]bool
	nums   []int
	fixed  []uint16
	any    any
	still  *leaf2
	do     func()
	why    reason
	blocks []block[int]
	cfg    config
}

type (
	action any
	leaf   struct {
		owner name
		up    *place
		v     int32
	}
	leaf2        struct{ v uint16 }
	reason       uint8
	config       struct{ still *leaf2 }
	block[T any] struct {
		v   []T
		own bool
	}
)

func newTestKit() *Kit {
	return NewKit(Rules{
		Shared:        []reflect.Type{reflect.TypeFor[*leaf2](), reflect.TypeFor[[]uint16](), reflect.TypeFor[config]()},
		Scratch:       []string{"[]image.action"},
		Ignored:       []string{"image.reason", "image.config"},
		IgnoredFields: []string{"block.own"},
		Sorted:        map[string]string{"[]*image.leaf": "owner"},
		Names:         []reflect.Type{reflect.TypeFor[name]()},
	})
}

func newPlace() *place {
	p := &place{
		out: []action{1}, n: -7, small: [3]uint8{1, 2, 3}, yes: true, rate: 0.5, text: "text",
		empty: map[int]bool{}, nums: make([]int, 2, 8), fixed: make([]uint16, 2, 8), still: &leaf2{9}, do: func() {},
		why: 1, blocks: []block[int]{{v: []int{4}, own: true}}, cfg: config{still: &leaf2{1}},
	}
	a, b := &leaf{"a", p, 1}, &leaf{"b", p, 2}
	p.near = p
	p.twins = [2]*leaf{a, b}
	p.leaves = []*leaf{a, b}
	p.byName = map[name]*leaf{"a": a, "b": b}
	p.any = a
	return p
}

func describe(k *Kit, p *place) string { return string(Append(k, nil, p, nil)) }

// A copy is equal, has the same shape, and shares nothing with the original but immutable values.
func TestCopy(t *testing.T) {
	k, p := newTestKit(), newPlace()
	before := describe(k, p)
	c := Copy(k, p)
	if describe(k, c) != before {
		t.Fatal("a copy differs")
	}
	if c.near != c || c.twins[0] != c.leaves[0] || c.byName["b"] != c.leaves[1] || c.any != any(c.leaves[0]) || c.leaves[1].up != c {
		t.Error("a shared value was copied twice")
	}
	if c.still != p.still || &c.fixed[0] != &p.fixed[0] || c.do == nil || c.cfg.still != p.cfg.still {
		t.Error("an immutable value was copied")
	}
	if c.out != nil {
		t.Error("scratch was copied")
	}
	if c.empty == nil || cap(c.fixed) != len(c.fixed) || cap(c.nums) != len(c.nums) {
		t.Error("an append to the copy changes the original")
	}
	c.n, c.small[0], c.text, c.nums[0], c.leaves[0].v, c.blocks[0].v[0] = 1, 9, "other", 5, 9, 9
	c.byName["c"], c.empty[1] = &leaf{}, true
	c.leaves[1] = nil
	_ = append(c.fixed, 7)
	if describe(k, p) != before || p.fixed[:3][2] != 0 {
		t.Error("a change of the copy changes the original")
	}
}

// The description changes with each value, except where a rule ignores the value.
func TestDescriptionsContainEveryField(t *testing.T) {
	k := newTestKit()
	before := describe(k, newPlace())
	for what, change := range map[string]func(*place){
		"number":                func(p *place) { p.n++ },
		"array":                 func(p *place) { p.small[2]++ },
		"flag":                  func(p *place) { p.yes = false },
		"fraction":              func(p *place) { p.rate = 0.25 },
		"text":                  func(p *place) { p.text = "texT" },
		"pointer":               func(p *place) { p.near = nil },
		"sharing":               func(p *place) { p.twins[1] = p.twins[0] },
		"order":                 func(p *place) { p.leaves[0], p.leaves[1] = p.leaves[1], p.leaves[0]; p.any = p.leaves[0] },
		"length":                func(p *place) { p.nums = p.nums[:1] },
		"element":               func(p *place) { p.nums[1] = 1 },
		"key":                   func(p *place) { p.byName["c"] = nil },
		"value":                 func(p *place) { p.byName["a"] = p.byName["b"] },
		"inside a pointer":      func(p *place) { p.leaves[1].v++ },
		"inside a shared value": func(p *place) { p.still = &leaf2{8} },
		"dynamic type":          func(p *place) { p.any = *p.leaves[0] },
		"nil interface":         func(p *place) { p.any = nil },
	} {
		p := newPlace()
		change(p)
		if describe(k, p) == before {
			t.Errorf("%s: a change does not change the description", what)
		}
	}
	for what, change := range map[string]func(*place){
		"scratch":       func(p *place) { p.out = nil },
		"ignored type":  func(p *place) { p.why = 7 },
		"ignored field": func(p *place) { p.blocks[0].own = false },
		"configuration": func(p *place) { p.cfg.still = nil },
		"capacity":      func(p *place) { p.nums = slices.Clip(p.nums) },
	} {
		p := newPlace()
		change(p)
		if describe(k, p) != before {
			t.Errorf("%s: an ignored change changes the description", what)
		}
	}
}

// If a and b are exchanged in a place, the description with exchanged names equals that of the original.
func TestNames(t *testing.T) {
	k := newTestKit()
	swap := func(b, n []byte) []byte { return append(b, n[0]^'a'^'b') }
	p, q := newPlace(), newPlace()
	a, b := q.leaves[0], q.leaves[1]
	a.v, b.v = b.v, a.v
	q.any, q.twins = b, [2]*leaf{b, a}
	if describe(k, q) == describe(k, p) {
		t.Fatal("the descriptions are equal without exchanged names")
	}
	if string(Append(k, nil, q, swap)) != describe(k, p) {
		t.Error("the descriptions differ with exchanged names")
	}
}

func TestChannelsCannotBeCopied(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a channel was copied")
		}
	}()
	Copy(newTestKit(), &struct{ c chan int }{})
}
