//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// The policy of all namespaces: few ranges, so that failures are readable. An owner
// that joins or leaves moves no key between the others.
var policy = partition.Consistent{VirtualNodes: 8}

const drift = 1.2

// An admin is a client of one manager, for one call.
type admin struct {
	leaseholdv1.AdminServiceClient
	ctx     context.Context
	version uint32
}

// query calls one manager, with a timeout of 2 s.
func query(t *testing.T, addr string, request func(admin) error) error {
	conn, err := grpc.NewClient("passthrough:///"+addr,
		append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // no call is in progress
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	return wire.ToError(request(admin{leaseholdv1.NewAdminServiceClient(conn), ctx, wire.Version}))
}

// query calls one manager after the other until a call succeeds.
func (g *group) query(t *testing.T, request func(admin) error) error {
	failed := errors.New("no manager is alive")
	for _, m := range g.managers {
		if m.process == nil || !m.Alive() {
			continue
		}
		err := query(t, m.addr, request)
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", m.name, err))
	}
	return failed
}

func getStatus(t *testing.T, addr string) (status *leaseholdv1.GetStatusResponse, err error) {
	err = query(t, addr, func(a admin) (err error) {
		status, err = a.GetStatus(a.ctx, &leaseholdv1.GetStatusRequest{Version: a.version})
		return err
	})
	return status, err
}

// listOwners returns the leader's list of sessions.
func (g *group) listOwners(t *testing.T, ns string) (owners []*leaseholdv1.OwnerStatus, err error) {
	err = g.query(t, func(a admin) error {
		response, err := a.ListOwners(a.ctx, &leaseholdv1.ListOwnersRequest{Version: a.version, Namespace: ns})
		owners = response.GetOwners()
		return err
	})
	return owners, err
}

// listRanges returns the leader's table.
func (g *group) listRanges(t *testing.T, ns string) (ranges []*leaseholdv1.HeldRange, err error) {
	err = g.query(t, func(a admin) error {
		ranges = nil
		stream, err := a.ListRanges(a.ctx, &leaseholdv1.ListRangesRequest{Version: a.version, Namespace: ns})
		for err == nil {
			var piece *leaseholdv1.ListRangesResponse
			piece, err = stream.Recv()
			ranges = append(ranges, piece.GetRanges()...)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	return ranges, err
}

// leasesOf returns an owner's leases in the leader's table.
func (g *group) leasesOf(t *testing.T, ns, owner string) []leasehold.Lease {
	t.Helper()
	ranges, err := g.listRanges(t, ns)
	if err != nil {
		t.Fatal(err)
	}
	var out []leasehold.Lease
	for _, r := range ranges {
		if r.GetOwner() != owner {
			continue
		}
		l, err := wire.ToLease(r.GetLease())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

// waitForAssignment waits until exactly the named owners are members, and the table
// is the assignment of the policy.
func (g *group) waitForAssignment(t *testing.T, ns string, names ...string) {
	t.Helper()
	want := assignment(t, names)
	eventually(t, "the table is the policy's assignment", func() error {
		owners, err := g.listOwners(t, ns)
		if err != nil {
			return err
		}
		if err := allMembers(owners, names); err != nil {
			return err
		}
		ranges, err := g.listRanges(t, ns)
		if err != nil {
			return err
		}
		var have partition.Assignment
		for _, r := range ranges {
			have = have.Append(leasehold.Key(r.GetLease().GetStart()), leasehold.OwnerID(r.GetOwner()))
		}
		if diff := cmp.Diff(want, have); diff != "" {
			return fmt.Errorf("the table differs from the policy's assignment (-want +have):\n%s", diff)
		}
		return nil
	})
}

func assignment(t *testing.T, names []string) partition.Assignment {
	t.Helper()
	var members []partition.Member
	for _, name := range slices.Sorted(slices.Values(names)) {
		members = append(members, partition.Member{Owner: leasehold.OwnerID(name), Weight: 1})
	}
	want, err := policy.Assign(partition.Input{Members: members})
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// allMembers returns an error unless exactly the named owners exist and are members.
func allMembers(owners []*leaseholdv1.OwnerStatus, names []string) error {
	return checkOwners(owners, names, leaseholdv1.OwnerState_OWNER_STATE_MEMBER)
}

// allRenewed returns an error unless exactly the named owners exist and this leader
// has renewed their leases. They become members with their next message.
func allRenewed(owners []*leaseholdv1.OwnerStatus, names []string) error {
	return checkOwners(owners, names, leaseholdv1.OwnerState_OWNER_STATE_MEMBER, leaseholdv1.OwnerState_OWNER_STATE_GREETED)
}

func checkOwners(owners []*leaseholdv1.OwnerStatus, names []string, states ...leaseholdv1.OwnerState) error {
	var found []string
	for _, o := range owners {
		if !slices.Contains(states, o.GetState()) {
			return fmt.Errorf("owner %s is %v", o.GetHolder().GetOwner(), o.GetState())
		}
		found = append(found, o.GetHolder().GetOwner())
	}
	slices.Sort(found)
	if want := slices.Sorted(slices.Values(names)); !slices.Equal(found, want) {
		return fmt.Errorf("owners are %q, want %q", found, want)
	}
	return nil
}
