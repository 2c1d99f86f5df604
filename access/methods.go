package access

import (
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
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

// rolesFor returns the roles that a need is for. The rest is a question of namespaces and
// names.
func rolesFor(n need) []role {
	switch n {
	case forAnybody, forAnyRole:
		return roles()
	case toHold:
		return []role{roleOwner}
	case toRead:
		return []role{roleLookup, roleManager, roleOperator}
	case toOrder:
		return []role{roleOperator}
	case forGroup:
		return []role{roleManager, roleOperator}
	case forManagers:
		return []role{roleManager}
	case forNobody:
	}
	return nil
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
	return slices.Contains(rolesFor(n), g.role) && (n != forGroup || g.everywhere)
}

func anyMeets(grants []grant, n need) bool {
	return slices.ContainsFunc(grants, func(g grant) bool { return g.meets(n) })
}

// A method is what a method of a service asks of its callers.
type method struct {
	need need
	// scope returns what a request is about, and false if it is no request of the
	// method. Nil: it is about no namespace.
	scope func(request any) (subject, bool)
	// lists: a request that names no namespace is about all that the caller may read,
	// and the method itself sees to it.
	lists bool
	// order: it changes something, and is written down.
	order bool
}

type subject struct {
	namespace leasehold.Namespace
	owner     leasehold.OwnerID // who wants to hold leases
}

// methodOf says what a method asks of its callers. What is not here is for nobody.
func methodOf(fullMethod string) method {
	switch fullMethod {
	case "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/List", "/grpc.health.v1.Health/Watch":
		return method{need: forAnybody}

	case "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
		"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo":
		return method{need: forAnyRole}

	case leaseholdv1.OwnerService_Hold_FullMethodName:
		return method{need: toHold, scope: ofHold}

	case leaseholdv1.LookupService_Follow_FullMethodName,
		leaseholdv1.AdminService_ListOwners_FullMethodName,
		leaseholdv1.AdminService_ListRanges_FullMethodName,
		leaseholdv1.AdminService_LookupKey_FullMethodName,
		leaseholdv1.AdminService_ListHistory_FullMethodName,
		leaseholdv1.AdminService_ListChanges_FullMethodName,
		leaseholdv1.AdminService_ListHotKeys_FullMethodName,
		leaseholdv1.AdminService_ListLookups_FullMethodName,
		leaseholdv1.AdminService_ListMoves_FullMethodName:
		return method{need: toRead, scope: ofNamespace}

	case leaseholdv1.AdminService_GetStatus_FullMethodName,
		leaseholdv1.AdminService_ListNamespaces_FullMethodName:
		return method{need: toRead, lists: true}

	case leaseholdv1.AdminService_Watch_FullMethodName:
		return method{need: toRead, scope: ofNamespace, lists: true}

	case leaseholdv1.AdminService_CreateNamespace_FullMethodName,
		leaseholdv1.AdminService_UpdateNamespace_FullMethodName:
		return method{need: toOrder, scope: ofConfig, order: true}

	case leaseholdv1.AdminService_DeleteNamespace_FullMethodName:
		return method{need: toOrder, scope: ofName, order: true}

	case leaseholdv1.AdminService_DrainOwner_FullMethodName,
		leaseholdv1.AdminService_MoveRange_FullMethodName,
		leaseholdv1.AdminService_Rebalance_FullMethodName:
		return method{need: toOrder, scope: ofNamespace, order: true}

	case leaseholdv1.AdminService_ListMembers_FullMethodName:
		return method{need: forGroup}

	case leaseholdv1.AdminService_AddMember_FullMethodName,
		leaseholdv1.AdminService_RemoveMember_FullMethodName:
		return method{need: forGroup, order: true}

	case storagev1.CouncilService_Share_FullMethodName:
		return method{need: forManagers}
	}
	return method{}
}

// about returns the scope of a method whose requests are of type R.
func about[R any](read func(R) subject) func(request any) (subject, bool) {
	return func(request any) (subject, bool) {
		r, ok := request.(R)
		if !ok {
			return subject{}, false
		}
		return read(r), true
	}
}

type (
	named       interface{ GetName() string }
	inOne       interface{ GetNamespace() string }
	configuring interface {
		GetNamespace() *leaseholdv1.NamespaceConfig
	}
)

// The scopes of methods.
var (
	ofNamespace = about(func(r inOne) subject { return subject{namespace: leasehold.Namespace(r.GetNamespace())} })
	ofName      = about(func(r named) subject { return subject{namespace: leasehold.Namespace(r.GetName())} })
	ofConfig    = about(func(r configuring) subject {
		return subject{namespace: leasehold.Namespace(r.GetNamespace().GetName())}
	})
	ofHold = about(func(r *leaseholdv1.HoldRequest) subject {
		return subject{leasehold.Namespace(r.GetNamespace()), leasehold.OwnerID(r.GetHolder().GetOwner())}
	})
)

// Covers reports an error if a server has a method that this package knows nothing
// about: it would be for nobody. Call it with the server's GetServiceInfo before it
// serves.
func Covers(services map[string]grpc.ServiceInfo) error {
	var missing []string
	for name, service := range services {
		for _, m := range service.Methods {
			if full := "/" + name + "/" + m.Name; methodOf(full).need == forNobody {
				missing = append(missing, full)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return leasehold.Errorf("serve", leasehold.ErrInternal, missing[0],
		"%d methods have no rule in package access, which must say who may call them", len(missing))
}
