package manager_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// guarded runs a test with two managers, of which m1 leads, and the namespaces pool
// and other.
func guarded(t *testing.T, test func(t *testing.T, c *cluster)) {
	guardedFor(t, 24*time.Hour, test)
}

// guardedFor is the same with certificates that last so long.
func guardedFor(t *testing.T, lasts time.Duration, test func(t *testing.T, c *cluster)) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.guard = newGuard(t)
		c.guard.lasts = lasts
		c.start("m1")
		eventually(t, time.Minute, "m1 leads", func() bool { return c.status("m1").GetLeader() == addr("m1") })
		c.start("m2")
		eventually(t, time.Minute, "m2 knows", func() bool { return c.status("m2").GetLeader() == addr("m1") })
		c.create("m1", &leaseholdv1.NamespaceConfig{Name: "pool"})
		c.create("m2", &leaseholdv1.NamespaceConfig{Name: "other"})
		test(t, c)
	})
}

// client returns an admin client with an identity.
func (c *cluster) client(manager, id string) leaseholdv1.AdminServiceClient {
	c.t.Helper()
	return leaseholdv1.NewAdminServiceClient(c.connect(manager, id))
}

func (c *cluster) connect(manager, id string) *grpc.ClientConn {
	c.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr(manager), append(wire.DialOptions(), c.as(id)...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (c *cluster) joinAs(id, name, namespace string) (*owner.Owner, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	cfg := c.ownerConfig(name)
	cfg.Namespace, cfg.DialOptions = leasehold.Namespace(namespace), c.as(id)
	o, err := owner.Join(ctx, cfg)
	if err == nil {
		c.t.Cleanup(func() { c.leave(o) })
	}
	return o, err
}

func (c *cluster) openAs(id, namespace string, managers ...string) (*lookup.Lookup, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	l, err := lookup.Open(ctx, lookup.Config{Namespace: leasehold.Namespace(namespace), Managers: managers, Credentials: c.guard.keeper(id).Client(), DialOptions: c.as(id)})
	if err == nil {
		c.t.Cleanup(func() { _ = l.Close(context.Background()) })
	}
	return l, err
}

// Owners and lookups are admitted to their namespaces, and are denied at once elsewhere.
func TestOwnersAndLookupsAreAuthorized(t *testing.T) {
	guarded(t, func(t *testing.T, c *cluster) {
		a, err := c.joinAs("spiffe://d/owner/pool/a", "a", "pool")
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "a has all keys", func() bool { return complete(a) })
		for _, m := range []string{"m1", "m2"} { // the standby follows the leader
			l, err := c.openAs("spiffe://d/lookup/pool", "pool", addr(m))
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, time.Minute, "the lookup has the table of "+m, func() bool { _, ok := l.Find(1); return ok })
		}
		for name, fails := range map[string]func() error{
			"another's name":      func() error { _, err := c.joinAs("spiffe://d/owner/pool/b", "a", "pool"); return err },
			"another's namespace": func() error { _, err := c.joinAs("spiffe://d/owner/pool/b", "b", "other"); return err },
			"a lookup as owner":   func() error { _, err := c.joinAs("spiffe://d/lookup/pool", "a", "pool"); return err },
			"an owner as lookup":  func() error { _, err := c.openAs("spiffe://d/owner/pool/a", "pool", addr("m1")); return err },
			"a lookup elsewhere":  func() error { _, err := c.openAs("spiffe://d/lookup/pool", "other", addr("m2")); return err },
			"unknown identity":    func() error { _, err := c.openAs("spiffe://d/somebody", "pool", addr("m1")); return err },
		} {
			begun := time.Now()
			if err := fails(); leasehold.KindOf(err) != leasehold.ErrDenied || time.Since(begun) > time.Second {
				t.Errorf("%s: after %v: %v (%v)", name, time.Since(begun), err, leasehold.KindOf(err))
			}
		}
		time.Sleep(time.Minute)
		if !complete(a) {
			t.Error("a has lost keys")
		}
		if n := c.guard.audited("m1", "owner admitted", "caller=spiffe://d/owner/pool/a", "owner=a"); n != 1 {
			t.Errorf("%d owners were admitted", n)
		}
	})
}

// Lists and events of every manager contain only the caller's namespaces.
func TestListsShowOnlyPermittedNamespaces(t *testing.T) {
	guarded(t, func(t *testing.T, c *cluster) {
		for _, m := range []string{"m1", "m2"} {
			for id, want := range map[string][]string{
				"spiffe://d/operator/ann": {"other", "pool"}, "spiffe://d/operator/pool": {"pool"}, "spiffe://d/lookup/pool": {"pool"},
			} {
				client := c.client(m, id)
				listed, err := client.ListNamespaces(t.Context(), &leaseholdv1.ListNamespacesRequest{Version: wire.Version})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, n := range listed.GetNamespaces() {
					got = append(got, n.GetName())
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s lists at %s:\n%s", id, m, diff)
				}
				status, err := client.GetStatus(t.Context(), &leaseholdv1.GetStatusRequest{Version: wire.Version})
				if err != nil {
					t.Fatal(err)
				}
				got = nil
				for _, n := range status.GetNamespaces() {
					got = append(got, n.GetName())
				}
				if diff := cmp.Diff(want, got); diff != "" || status.GetProblem() != "" {
					t.Errorf("%s sees at %s: %s\n%s", id, m, status.GetProblem(), diff)
				}
			}
			seen := c.watch(m, "spiffe://d/operator/pool")
			for _, namespace := range []string{"other", "pool"} {
				if _, err := c.admin(m).Rebalance(t.Context(), &leaseholdv1.RebalanceRequest{Version: wire.Version, Namespace: namespace}); err != nil {
					t.Fatal(err)
				}
			}
			if event := <-seen; event.GetLeader() == nil {
				t.Errorf("the first event at %s is %v", m, event)
			}
			if event := <-seen; event.GetNamespace() != "pool" {
				t.Errorf("the second event at %s is %v", m, event)
			}
		}
		_, err := c.client("m2", "spiffe://d/operator/pool").Rebalance(t.Context(), &leaseholdv1.RebalanceRequest{Version: wire.Version, Namespace: "other"})
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("%v", err)
		}
	})
}

// watch returns the events of a watcher with an identity.
func (c *cluster) watch(manager, id string) <-chan *leaseholdv1.WatchResponse {
	c.t.Helper()
	stream, err := c.client(manager, id).Watch(c.t.Context(), &leaseholdv1.WatchRequest{Version: wire.Version})
	if err != nil {
		c.t.Fatal(err)
	}
	out := make(chan *leaseholdv1.WatchResponse, 16)
	header, err := stream.Header() // the call is served
	if err != nil {
		c.t.Fatal(header, err)
	}
	go func() {
		defer close(out)
		for {
			event, err := stream.Recv()
			if err != nil {
				return
			}
			out <- event
		}
	}()
	return out
}

// The leader authorizes and audits a forwarded call as the original caller's.
func TestForwardedOrdersAreTheCallers(t *testing.T) {
	guarded(t, func(t *testing.T, c *cluster) {
		update := func(client leaseholdv1.AdminServiceClient, ctx context.Context, namespace string) error {
			_, err := client.UpdateNamespace(ctx, &leaseholdv1.UpdateNamespaceRequest{
				Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{Name: namespace, MaxOwners: 7},
			})
			return err
		}
		byPool := c.client("m2", "spiffe://d/operator/pool")
		if err := update(byPool, t.Context(), "pool"); err != nil {
			t.Fatal(err)
		}
		if n := c.guard.audited("m1", "operation completed", "caller=spiffe://d/operator/pool", "via=\"spiffe://d/manager/m2, dns:m2", "namespace=pool", "UpdateNamespace"); n != 1 {
			t.Errorf("the leader has audited the call %d times", n)
		}
		if n := c.guard.audited("m2", "UpdateNamespace"); n != 0 {
			t.Errorf("the standby has audited the call %d times", n)
		}
		if err := update(byPool, t.Context(), "other"); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%v", err)
		}
		spoofed := metadata.AppendToOutgoingContext(t.Context(), "leasehold-caller", "spiffe://d/operator/ann")
		for _, m := range []string{"m1", "m2"} {
			if err := update(c.client(m, "spiffe://d/operator/pool"), spoofed, "other"); status.Code(err) != codes.PermissionDenied {
				t.Errorf("%v", err)
			}
			if n := c.guard.audited(m, "call denied", "spiffe://d/operator/pool is not a manager"); n == 0 {
				t.Errorf("%s does not log the denial", m)
			}
		}
	})
}

// The leader lists only authenticated managers as standbys.
func TestOnlyManagersAreListedAsStandbys(t *testing.T) {
	guarded(t, func(t *testing.T, c *cluster) {
		claims := metadata.AppendToOutgoingContext(t.Context(), "leasehold-manager-bin", "evil:7400")
		ann := c.client("m1", "spiffe://d/operator/ann")
		if _, err := ann.GetStatus(claims, &leaseholdv1.GetStatusRequest{Version: wire.Version}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // m2 has sent its request
		asked, err := ann.GetStatus(t.Context(), &leaseholdv1.GetStatusRequest{Version: wire.Version})
		if err != nil {
			t.Fatal(err)
		}
		var managers []string
		for _, m := range asked.GetManagers() {
			managers = append(managers, m.GetAddr())
		}
		if !slices.Equal(managers, []string{addr("m1"), addr("m2")}) {
			t.Errorf("the managers are %q, want m1 and m2", managers)
		}
	})
}

// An owner with a revoked certificate loses its leases in time; others are not affected.
func TestRevokedOwner(t *testing.T) {
	guarded(t, func(t *testing.T, c *cluster) {
		a, err := c.joinAs("spiffe://d/owner/pool/a", "a", "pool")
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.joinAs("spiffe://d/owner/pool/b", "b", "pool")
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "both have keys", func() bool { return complete(a, b) && len(a.Leases()) > 0 && len(b.Leases()) > 0 })
		c.guard.revoke("spiffe://d/owner/pool/a")
		eventually(t, 30*time.Second, "b has all keys", func() bool { return complete(b) })
		if len(a.Leases()) > 0 {
			t.Error("a still has keys")
		}
		if n := c.guard.audited("m1", "call denied", "spiffe://d/owner/pool/a was revoked", "method=Hold"); n == 0 {
			t.Error("the denial is not logged")
		}
		if _, err := c.joinAs("spiffe://d/owner/pool/a", "a", "pool"); err == nil {
			t.Error("an owner with a revoked certificate is admitted")
		}
	})
}

// Certificates of managers, owners and lookups are replaced, and expire, while leases are held. No lease and no
// contact is lost. New connections with valid certificates are accepted afterwards.
func TestCertificatesChangeUnderLeases(t *testing.T) {
	guardedFor(t, 20*time.Minute, func(t *testing.T, c *cluster) {
		a, err := c.joinAs("spiffe://d/owner/pool/a", "a", "pool")
		if err != nil {
			t.Fatal(err)
		}
		l, err := c.openAs("spiffe://d/lookup/pool", "pool", addr("m2"))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "a has all keys", func() bool { return complete(a) })
		before := a.Leases()
		var lost atomic.Int64
		go func() {
			for _, err := range l.Losses(t.Context()) {
				if err != nil {
					break
				}
				lost.Add(1)
			}
		}()
		renew := func(lasts time.Duration) {
			c.guard.lasts = lasts
			for _, name := range []string{"m1", "m2"} {
				c.guard.issue("spiffe://d/manager/"+name, name)
			}
			for _, id := range []string{"spiffe://d/owner/pool/a", "spiffe://d/lookup/pool"} {
				c.guard.issue(id)
			}
		}
		keeps := func(what string) {
			t.Helper()
			for range 600 {
				time.Sleep(3 * time.Second)
				if now := a.Leases(); !slices.Equal(now, before) {
					t.Fatalf("%s: a had %v, and has %v", what, before, now)
				}
			}
		}
		keeps("certificates run out")
		renew(20 * time.Minute)
		keeps("they were replaced late, and run out again")
		renew(24 * time.Hour)
		keeps("they were replaced once more")
		if n := lost.Load(); n > 0 {
			t.Errorf("%d losses", n)
		}
		if b, err := c.joinAs("spiffe://d/owner/pool/b", "b", "pool"); err != nil {
			t.Error(err)
		} else {
			eventually(t, time.Minute, "b has keys", func() bool { return complete(a, b) && len(b.Leases()) > 0 })
		}
	})
}

// An idle stream ends with the reason, not with gRPC's status Canceled.
func TestStreamsEndWithReason(t *testing.T) {
	guarded(t, func(t *testing.T, c *cluster) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		hold, err := leaseholdv1.NewOwnerServiceClient(c.connect("m1", "spiffe://d/owner/pool/a")).Hold(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := hold.Send(&leaseholdv1.HoldRequest{
			Version: wire.Version, Namespace: "pool", Seq: 1,
			Holder: &leaseholdv1.Holder{Owner: "a", Session: []byte("0123456789abcdef"), Addr: "a:80", Weight: 1},
		}); err != nil {
			t.Fatal(err)
		}
		watch, err := c.client("m2", "spiffe://d/operator/pool").Watch(ctx, &leaseholdv1.WatchRequest{Version: wire.Version, Namespace: "pool"})
		if err != nil {
			t.Fatal(err)
		}
		for name, recv := range map[string]func() error{
			"hold":  func() error { _, err := hold.Recv(); return err },
			"watch": func() error { _, err := watch.Recv(); return err },
		} {
			if err := recv(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		c.guard.permit(strings.NewReplacer("owner/pool", "owner/none", "operator/pool", "operator/none").Replace(guardedFile))
		for name, recv := range map[string]func() error{
			"hold":  func() error { _, err := hold.Recv(); return err },
			"watch": func() error { _, err := watch.Recv(); return err },
		} {
			for err = nil; err == nil; {
				err = recv()
			}
			if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "has no role") {
				t.Errorf("%s ends with %v", name, err)
			}
		}
	})
}

// A standby that has lost the role manager cannot follow the leader, and logs it; its lookups switch to another
// manager.
func TestStandbyWithoutRoleManager(t *testing.T) {
	guarded(t, func(t *testing.T, c *cluster) {
		d := &diary{}
		c.logs = d
		c.start("m3")
		l, err := c.openAs("spiffe://d/lookup/pool", "pool", addr("m3"))
		if err != nil {
			t.Fatal(err)
		}
		c.guard.permit(strings.ReplaceAll(guardedFile, "spiffe://d/manager/m3", "spiffe://d/manager/m9"))
		time.Sleep(2 * time.Minute)
		if l.Ready() {
			t.Error("the lookup considers its table current")
		}
		if n := d.count("denies this standby access to its tables"); n < 1 || n > 3 {
			t.Errorf("the denial is logged %d times", n)
		}
		_, err = c.client("m3", "spiffe://d/operator/ann").ListOwners(t.Context(), &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: "pool"})
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "spiffe://d/manager/m3, dns:m3 is not a manager") {
			t.Errorf("%v", err)
		}
	})
}

// Calls within the process have the permissions of their caller.
func TestAdminInProcess(t *testing.T) {
	guarded(t, func(t *testing.T, c *cluster) {
		for _, m := range []string{"m1", "m2"} {
			admin := c.managers[m].Admin()
			listed := func(ctx context.Context) (int, error) {
				answer, err := admin.ListNamespaces(ctx, &leaseholdv1.ListNamespacesRequest{Version: wire.Version})
				return len(answer.GetNamespaces()), err
			}
			if _, err := listed(t.Context()); status.Code(err) != codes.Unauthenticated {
				t.Errorf("without a caller: %v", err)
			}
			ctx := access.WithCaller(t.Context(), access.Known("spiffe://d/operator/pool"))
			if n, err := listed(ctx); err != nil || n != 1 {
				t.Errorf("%d namespaces: %v", n, err)
			}
			if _, err := admin.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version}); err != nil {
				t.Error(err)
			}
			_, err := admin.DeleteNamespace(ctx, &leaseholdv1.DeleteNamespaceRequest{Version: wire.Version, Name: "other"})
			if status.Code(err) != codes.PermissionDenied {
				t.Errorf("%v", err)
			}
			ranges := &localRanges{ctx: ctx}
			if err := admin.ListRanges(&leaseholdv1.ListRangesRequest{Version: wire.Version, Namespace: "pool"}, ranges); err != nil || ranges.pieces == 0 {
				t.Errorf("%d pieces: %v", ranges.pieces, err)
			}
			if err := admin.ListRanges(&leaseholdv1.ListRangesRequest{Version: wire.Version, Namespace: "other"}, ranges); status.Code(err) != codes.PermissionDenied {
				t.Errorf("%v", err)
			}
		}
	})
}

type localRanges struct {
	grpc.ServerStream
	ctx    context.Context
	pieces int
}

func (l *localRanges) Context() context.Context                   { return l.ctx }
func (l *localRanges) Send(*leaseholdv1.ListRangesResponse) error { l.pieces++; return nil }

// Only managers may call the catalog service of a diskless group.
func TestCatalogServiceIsForManagersOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.guard, c.peers = newGuard(t), &peers{members: []string{"m1", "m2", "m3"}}
		for _, name := range c.peers.members {
			c.start(name)
		}
		leader := c.leads(time.Minute)
		c.create(c.standby(leader), &leaseholdv1.NamespaceConfig{Name: "pool"})
		a, err := c.joinAs("spiffe://d/owner/pool/a", "a", "pool")
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "a has all keys", func() bool { return complete(a) })
		for _, name := range c.peers.members {
			if n := c.guard.audited(name, "call denied"); n != 0 {
				t.Errorf("%s has denied calls:\n%s", name, c.guard.audit[name])
			}
		}
	})
}
