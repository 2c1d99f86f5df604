package access

import (
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secure"
)

// A role is what a rule gives to an identity.
type role string

const (
	roleOwner    role = "owner"
	roleLookup   role = "lookup"
	roleManager  role = "manager"
	roleOperator role = "operator"
)

func roles() []role { return []role{roleOwner, roleLookup, roleManager, roleOperator} }

// A need is what a method asks of its caller.
type need uint8

const (
	forNobody   need = iota // there is no rule
	forAnybody              // whoever it is
	forAnyRole              // who has one
	toHold                  // leases of a namespace, under a name
	toRead                  // about a namespace
	toOrder                 // something in a namespace
	forGroup                // what concerns all managers
	forManagers             // what managers say to each other
)

// meets reports whether a role is one of those that a need is for. The rest is a
// question of namespaces and names.
func (r role) meets(n need) bool {
	switch n {
	case forAnybody, forAnyRole:
		return true
	case toHold:
		return r == roleOwner
	case toRead:
		return r == roleLookup || r == roleOperator || r == roleManager
	case toOrder:
		return r == roleOperator
	case forGroup:
		return r == roleOperator || r == roleManager
	case forManagers:
		return r == roleManager
	case forNobody:
	}
	return false
}

// nameTemplate stands for the owner's name in an identity and in names.
const nameTemplate = "{name}"

// A rule is one of the file. It is immutable.
type rule struct {
	line       int
	identity   secure.Identity
	prefix     string // of an identity with {name}: what comes before
	role       role
	everywhere bool // in all namespaces
	namespaces []leasehold.Namespace
	names      []string // of owners; may have {name} in them if the identity has
}

func (r *rule) covers(ns leasehold.Namespace) bool {
	return r.everywhere || slices.Contains(r.namespaces, ns)
}

func isPattern(id secure.Identity) bool { return strings.Contains(string(id), nameTemplate) }

// A grant is a rule that is about a caller.
type grant struct {
	*rule
	name string // what stands for {name}
}

// own returns the names under which an owner may hold leases.
func (g grant) own() []leasehold.OwnerID {
	out := make([]leasehold.OwnerID, len(g.names))
	for i, name := range g.names {
		out[i] = leasehold.OwnerID(strings.ReplaceAll(name, nameTemplate, g.name))
	}
	return out
}

// meets reports whether a grant is of use for a need at all.
func (g grant) meets(n need) bool {
	return g.role.meets(n) && (n != forGroup || g.everywhere)
}

// anyMeets reports whether one of the grants is.
func anyMeets(grants []grant, n need) bool {
	return slices.ContainsFunc(grants, func(g grant) bool { return g.meets(n) })
}
