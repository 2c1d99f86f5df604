package access

import (
	"slices"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

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

// A subject is what a request is about.
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

func ofNamespace(request any) (subject, bool) {
	r, ok := request.(interface{ GetNamespace() string })
	if !ok {
		return subject{}, false
	}
	return subject{namespace: leasehold.Namespace(r.GetNamespace())}, true
}

func ofName(request any) (subject, bool) {
	r, ok := request.(interface{ GetName() string })
	if !ok {
		return subject{}, false
	}
	return subject{namespace: leasehold.Namespace(r.GetName())}, true
}

func ofConfig(request any) (subject, bool) {
	r, ok := request.(interface {
		GetNamespace() *leaseholdv1.NamespaceConfig
	})
	if !ok {
		return subject{}, false
	}
	return subject{namespace: leasehold.Namespace(r.GetNamespace().GetName())}, true
}

func ofHold(request any) (subject, bool) {
	r, ok := request.(*leaseholdv1.HoldRequest)
	if !ok {
		return subject{}, false
	}
	return subject{leasehold.Namespace(r.GetNamespace()), leasehold.OwnerID(r.GetHolder().GetOwner())}, true
}

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
