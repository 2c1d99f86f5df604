package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// A Fault is a kind of fault, and its injection by a nemesis of type N.
type Fault[N any] struct {
	Kind
	// Inflict injects the fault, and reports whether there was a target.
	Inflict func(N) bool
}

// Faults are the kinds of faults of a simulator. The order is part of a seed's meaning.
type Faults[N any] []Fault[N]

// Kinds returns the kinds of the faults.
func (f Faults[N]) Kinds() Kinds {
	var kinds Kinds
	for i := range f {
		kinds = append(kinds, f[i].Kind)
	}
	return kinds
}

// Pick returns the indices of the kinds in a mix, each repeated by its weight. It omits a kind if skip
// returns true.
func (f Faults[N]) Pick(m Mix, skip func() bool) []int {
	picked := []int{}
	for i := range f {
		if weight, in := m[f[i].Name]; in && !skip() {
			picked = append(picked, slices.Repeat([]int{i}, weight)...)
		}
	}
	return picked
}

// A Kind is a kind of fault.
type Kind struct {
	Name   string
	Weight int // in the default mix; 0 if it is not in it
}

// Kinds are all kinds of faults of a simulator.
type Kinds []Kind

// A Mix has the relative weights of the kinds of faults. A kind that is not in it is not injected.
type Mix map[string]int

// Names returns the names of all kinds.
func (k Kinds) Names() []string {
	var names []string
	for _, kind := range k {
		names = append(names, kind.Name)
	}
	return names
}

// Default returns the default mix.
func (k Kinds) Default() Mix {
	m := Mix{}
	for _, kind := range k {
		if kind.Weight > 0 {
			m[kind.Name] = kind.Weight
		}
	}
	return m
}

// Parse parses a fault mix: "default", "none", or a list such as "owner-crash=3,loss=1". A list after
// "default," changes the default.
func (k Kinds) Parse(s string) (Mix, error) {
	m := Mix{}
	for i, item := range strings.Split(s, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(item), "=")
		if !found && i == 0 && (name == "default" || name == "none") {
			if name == "default" {
				m = k.Default()
			}
			continue
		}
		if !slices.Contains(k.Names(), name) {
			return nil, leasehold.Errorf("fault mix", leasehold.ErrInvalid, name, "no such fault; use default, none, %s", strings.Join(k.Names(), ", "))
		}
		weight, err := strconv.Atoi(value)
		if err != nil || !found {
			return nil, leasehold.Errorf("fault mix", leasehold.ErrInvalid, item, "a name and a weight are required, such as %s=3", name)
		}
		m[name] = weight
		if weight == 0 {
			delete(m, name)
		}
	}
	return m, k.Validate(m)
}

// Validate returns an error for an invalid mix.
func (k Kinds) Validate(m Mix) error {
	for name, weight := range m {
		if !slices.Contains(k.Names(), name) {
			return leasehold.Errorf("fault mix", leasehold.ErrInvalid, name, "no such fault")
		}
		if weight < 0 || weight > 1000 {
			return leasehold.Errorf("fault mix", leasehold.ErrInvalid, name, "weight %d is not in the range 0 to 1000", weight)
		}
	}
	return nil
}

// Format returns a mix in the syntax of Parse.
func (k Kinds) Format(m Mix) string {
	if maps.Equal(m, k.Default()) {
		return "default"
	}
	if len(m) == 0 {
		return "none"
	}
	var items []string
	for _, kind := range k {
		if weight, in := m[kind.Name]; in {
			items = append(items, fmt.Sprintf("%s=%d", kind.Name, weight))
		}
	}
	return strings.Join(items, ",")
}

// MixFlag returns the mix as the value of a flag.
func (k Kinds) MixFlag(m *Mix) *MixFlag { return &MixFlag{k, m, k.Format(*m)} }

// A MixFlag is a fault mix as a flag (pflag.Value). It keeps the user's text if that is shorter than the
// formatted mix.
type MixFlag struct {
	kinds Kinds
	mix   *Mix
	text  string
}

// Set parses the mix.
func (f *MixFlag) Set(s string) error {
	mix, err := f.kinds.Parse(s)
	if err != nil {
		return err
	}
	*f.mix, f.text = mix, f.kinds.Format(mix)
	if compact := strings.Join(strings.Fields(s), ""); len(compact) < len(f.text) {
		f.text = compact
	}
	return nil
}

func (f *MixFlag) String() string { return f.text }

// Type returns the type of the flag for the help.
func (*MixFlag) Type() string { return "string" }
