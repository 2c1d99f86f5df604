package access

import (
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	autoshardingv1 "github.com/leasehold-dev/leasehold/proto/autosharding/v1"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
)

type role string

const (
	roleOwner    role = "owner"
	roleLookup   role = "lookup"
	roleManager  role = "manager"
	roleOperator role = "operator"
)

func roles() []role { return []role{roleOwner, roleLookup, roleManager, roleOperator} }

// A need is the permission that a method requires.
type need uint8

const (
	unlisted         need = iota // the method has no rule: denied
	public                       // no authentication
	anyRole                      // a role in some namespace
	holdLeases                   // the role owner in a namespace, for an owner name
	readNamespace                // a reading role in a namespace
	operateNamespace             // the role operator in a namespace
	operateGroup                 // operator or manager of all namespaces
	managersOnly                 // the role manager
)

// rolesFor returns the roles that can satisfy a need, in the right namespaces and under
// the right names.
func rolesFor(n need) []role {
	switch n {
	case public, anyRole:
		return roles()
	case holdLeases:
		return []role{roleOwner}
	case readNamespace:
		return []role{roleLookup, roleManager, roleOperator}
	case operateNamespace:
		return []role{roleOperator}
	case operateGroup:
		return []role{roleManager, roleOperator}
	case managersOnly:
		return []role{roleManager}
	case unlisted:
	}
	return nil
}

// nameTemplate stands for the owner's name in an identity and in names.
const nameTemplate = "{name}"

// A rule is an entry of the file. It is immutable.
type rule struct {
	line          int
	identity      secure.Identity
	prefix        string // the part of an identity before {name}
	role          role
	allNamespaces bool
	namespaces    []leasehold.Namespace
	names         []string // of owners; with {name} if the identity has it
}

func (r *rule) includes(ns leasehold.Namespace) bool {
	return r.allNamespaces || slices.Contains(r.namespaces, ns)
}

func isPattern(id secure.Identity) bool { return strings.Contains(string(id), nameTemplate) }

// A grant is a rule that matches an identity of a caller.
type grant struct {
	*rule
	name string // the text that {name} matched
}

// ownerNames returns the names under which an owner may hold leases.
func (g grant) ownerNames() []leasehold.OwnerID {
	out := make([]leasehold.OwnerID, len(g.names))
	for i, name := range g.names {
		out[i] = leasehold.OwnerID(strings.ReplaceAll(name, nameTemplate, g.name))
	}
	return out
}

// satisfies reports whether a grant has the role for a need, in some namespace.
func (g grant) satisfies(n need) bool {
	return slices.Contains(rolesFor(n), g.role) && (n != operateGroup || g.allNamespaces)
}

func anySatisfies(grants []grant, n need) bool {
	return slices.ContainsFunc(grants, func(g grant) bool { return g.satisfies(n) })
}

// A method is the authorization rule of an RPC method.
type method struct {
	need need
	// subjectOf returns the subject of a request, or false for a message of another
	// type. Nil: the method is about no namespace.
	subjectOf func(request any) (subject, bool)
	// firstOnly: later messages of a stream have no subject.
	firstOnly bool
	// listsAll: a request without a namespace is about all that the caller may read;
	// the handler filters them by [Policy.Visible].
	listsAll bool
	// audited: the method changes something and is logged.
	audited bool
}

type subject struct {
	namespace leasehold.Namespace
	owner     leasehold.OwnerID // of a request for leases
}

// methodOf returns the rule of a method. A method that is not in this table is denied.
func methodOf(fullMethod string) method {
	switch fullMethod {
	case "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/List", "/grpc.health.v1.Health/Watch":
		return method{need: public}

	case "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
		"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo":
		return method{need: anyRole}

	case leaseholdv1.OwnerService_Hold_FullMethodName:
		return method{need: holdLeases, subjectOf: ofHold}

	case leaseholdv1.OwnerService_ReportDeath_FullMethodName:
		return method{need: holdLeases, subjectOf: ofDeath}

	case leaseholdv1.LookupService_Follow_FullMethodName,
		leaseholdv1.AdminService_ListOwners_FullMethodName,
		leaseholdv1.AdminService_ListRanges_FullMethodName,
		leaseholdv1.AdminService_LookupKey_FullMethodName,
		leaseholdv1.AdminService_ListHistory_FullMethodName,
		leaseholdv1.AdminService_ListChanges_FullMethodName,
		leaseholdv1.AdminService_ListHotKeys_FullMethodName,
		leaseholdv1.AdminService_ListLookups_FullMethodName,
		leaseholdv1.AdminService_ListMoves_FullMethodName:
		return method{need: readNamespace, subjectOf: ofNamespace}

	case autoshardingv1.AutoshardingService_WatchShardingAssignment_FullMethodName:
		return method{need: readNamespace, subjectOf: ofTarget, firstOnly: true}

	case leaseholdv1.AdminService_GetStatus_FullMethodName,
		leaseholdv1.AdminService_ListNamespaces_FullMethodName:
		return method{need: readNamespace, listsAll: true}

	case leaseholdv1.AdminService_Watch_FullMethodName:
		return method{need: readNamespace, subjectOf: ofNamespace, listsAll: true}

	case leaseholdv1.AdminService_CreateNamespace_FullMethodName,
		leaseholdv1.AdminService_UpdateNamespace_FullMethodName:
		return method{need: operateNamespace, subjectOf: ofConfig, audited: true}

	case leaseholdv1.AdminService_DeleteNamespace_FullMethodName:
		return method{need: operateNamespace, subjectOf: ofName, audited: true}

	case leaseholdv1.AdminService_DrainOwner_FullMethodName,
		leaseholdv1.AdminService_MoveRange_FullMethodName,
		leaseholdv1.AdminService_Rebalance_FullMethodName:
		return method{need: operateNamespace, subjectOf: ofNamespace, audited: true}

	case leaseholdv1.AdminService_ListMembers_FullMethodName:
		return method{need: operateGroup}

	case leaseholdv1.AdminService_AddMember_FullMethodName,
		leaseholdv1.AdminService_RemoveMember_FullMethodName:
		return method{need: operateGroup, audited: true}

	case storagev1.CouncilService_Share_FullMethodName:
		return method{need: managersOnly}
	}
	return method{}
}

// about returns the subjectOf of a method whose requests have type R.
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

// The values of subjectOf.
var (
	ofNamespace = about(func(r inOne) subject { return subject{namespace: leasehold.Namespace(r.GetNamespace())} })
	ofName      = about(func(r named) subject { return subject{namespace: leasehold.Namespace(r.GetName())} })
	ofConfig    = about(func(r configuring) subject {
		return subject{namespace: leasehold.Namespace(r.GetNamespace().GetName())}
	})
	ofHold = about(func(r *leaseholdv1.HoldRequest) subject {
		return subject{leasehold.Namespace(r.GetNamespace()), leasehold.OwnerID(r.GetHolder().GetOwner())}
	})
	ofDeath = about(func(r *leaseholdv1.ReportDeathRequest) subject {
		return subject{leasehold.Namespace(r.GetNamespace()), leasehold.OwnerID(r.GetOwner())}
	})
)

// ofTarget is a subjectOf. Only the first message of a stream has a target.
func ofTarget(request any) (subject, bool) {
	r, ok := request.(*autoshardingv1.WatchShardingAssignmentRequest)
	first := r.GetInitialClientConfig()
	return subject{namespace: leasehold.Namespace(first.GetTarget())}, ok && first != nil
}

// Covers returns an error if a server has a method without a rule in this package: all
// its calls would be denied. Call it with the server's GetServiceInfo before Serve.
func Covers(services map[string]grpc.ServiceInfo) error {
	var missing []string
	for name, service := range services {
		for _, m := range service.Methods {
			if full := "/" + name + "/" + m.Name; methodOf(full).need == unlisted {
				missing = append(missing, full)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return leasehold.Errorf("serve", leasehold.ErrInternal, missing[0],
		"%d methods have no rule in package access: add them to methodOf", len(missing))
}
