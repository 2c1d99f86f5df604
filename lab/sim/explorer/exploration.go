package explorer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
)

// An Exploration is a scenario of any protocol, to be explored or replayed.
type Exploration interface {
	Name() string
	Explore(ctx context.Context, o Options) (*Report, error)
	Replay(way string) (*Violation, error)
}

// Explorations returns scenarios as explorations.
func Explorations[E Exploration](all []E) []Exploration {
	var out []Exploration
	for _, e := range all {
		out = append(out, e)
	}
	return out
}

// Find returns the scenario with a name among others.
func Find[E Exploration](all []E, name string) (E, error) {
	i := slices.IndexFunc(all, func(e E) bool { return e.Name() == name })
	if i < 0 {
		var names []string
		for _, e := range all {
			names = append(names, e.Name())
		}
		var none E
		return none, fmt.Errorf("there is no scenario %q: want one of %q", name, names)
	}
	return all[i], nil
}

// constant is randomness that is none.
type constant struct{}

func (constant) Uint64() uint64 { return 0x9e3779b97f4a7c15 }

// Constant returns a source that always draws the same: a random wait is always as long.
func Constant() *rand.Rand { return rand.New(constant{}) }
