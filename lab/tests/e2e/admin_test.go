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

// The configuration of all namespaces here: few ranges, so that failures can be
// read, and the usual drift bound. An owner that comes or goes moves no key
// between the others.
var policy = partition.Consistent{VirtualNodes: 8}

const drift = 1.2

// An admin asks one manager one thing.
type admin struct {
	leaseholdv1.AdminServiceClient
	ctx     context.Context
	version uint32
}

// ask puts a question to one manager, and does not wait for long.
func ask(t *testing.T, addr string, question func(admin) error) error {
	conn, err := grpc.NewClient("passthrough:///"+addr,
		append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is under way
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	return wire.ToError(question(admin{leaseholdv1.NewAdminServiceClient(conn), ctx, wire.Version}))
}

// ask puts a question to one manager after the other until one answers.
func (g *group) ask(t *testing.T, question func(admin) error) error {
	failed := errors.New("no manager has answered")
	for _, m := range g.managers {
		if m.process == nil || !m.Alive() {
			continue
		}
		err := ask(t, m.addr, question)
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", m.name, err))
	}
	return failed
}

func getStatus(t *testing.T, addr string) (status *leaseholdv1.GetStatusResponse, err error) {
	err = ask(t, addr, func(a admin) (err error) {
		status, err = a.GetStatus(a.ctx, &leaseholdv1.GetStatusRequest{Version: a.version})
		return err
	})
	return status, err
}

// listOwners returns what the leader makes of each session.
func (g *group) listOwners(t *testing.T, ns string) (owners []*leaseholdv1.OwnerStatus, err error) {
	err = g.ask(t, func(a admin) error {
		answer, err := a.ListOwners(a.ctx, &leaseholdv1.ListOwnersRequest{Version: a.version, Namespace: ns})
		owners = answer.GetOwners()
		return err
	})
	return owners, err
}

// listRanges returns the leader's table.
func (g *group) listRanges(t *testing.T, ns string) (ranges []*leaseholdv1.HeldRange, err error) {
	err = g.ask(t, func(a admin) error {
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

// leasesOf returns what the leader's table gives to an owner.
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

// settled waits until the named owners, and nobody else, take part, and each
// has the keys that the policy gives it.
func (g *group) settled(t *testing.T, ns string, names ...string) {
	t.Helper()
	want := assignment(t, names)
	eventually(t, "everybody has their keys", func() error {
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
			return fmt.Errorf("the table is not what the policy wants (-want +have):\n%s", diff)
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

// allMembers reports what keeps the named owners from being all that there are,
// and from taking part.
func allMembers(owners []*leaseholdv1.OwnerStatus, names []string) error {
	return allAre(owners, names, leaseholdv1.OwnerState_OWNER_STATE_MEMBER)
}

// allHeard reports what keeps the named owners from being all that there are,
// and from having had an answer of this leader: that is when their leases are
// renewed. They take part when they have answered in turn.
func allHeard(owners []*leaseholdv1.OwnerStatus, names []string) error {
	return allAre(owners, names, leaseholdv1.OwnerState_OWNER_STATE_MEMBER, leaseholdv1.OwnerState_OWNER_STATE_GREETED)
}

func allAre(owners []*leaseholdv1.OwnerStatus, names []string, states ...leaseholdv1.OwnerState) error {
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
