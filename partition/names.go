package partition

import (
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// DefaultName is the name of the policy where none is named.
const DefaultName = "balanced"

// Options are the settings of all policies by name. A policy looks only at its
// own, and 0 always means its default.
type Options struct {
	VirtualNodes int     // of Adaptive and Consistent
	Ranges       int     // of Balanced
	Tolerance    float64 // of Balanced
	Slots        []Slot  // of Static
}

// Names returns the names of all policies, sorted.
func Names() []string {
	return []string{
		Adaptive{}.Name(), Balanced{}.Name(), Consistent{}.Name(), Even{}.Name(), Static{}.Name(),
	}
}

// ByName returns the policy that configuration calls name; "" is DefaultName.
// Options that the policy would refuse are refused here.
func ByName(name string, o Options) (Policy, error) {
	var p Policy
	var err error
	switch name {
	case "", DefaultName:
		b := Balanced{Ranges: o.Ranges, Tolerance: o.Tolerance}
		p, err = b, b.validate()
	case Adaptive{}.Name():
		p, err = Adaptive{VirtualNodes: o.VirtualNodes}, validateNodes(name, o.VirtualNodes)
	case Consistent{}.Name():
		p, err = Consistent{VirtualNodes: o.VirtualNodes}, validateNodes(name, o.VirtualNodes)
	case Even{}.Name():
		p = Even{}
	case Static{}.Name():
		p, err = NewStatic(o.Slots)
	default:
		err = leasehold.Errorf("find policy", leasehold.ErrInvalid, name,
			"there is no such policy; want one of %s", strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}
