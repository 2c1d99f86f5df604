package access_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold/access"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An order is written down with who has given it, by way of whom, from where.
func TestOrdersAreWrittenDown(t *testing.T) {
	d := newDesk(t, usualFile)
	ann := leaseholdv1.NewAdminServiceClient(d.dial(&papers{ids: []string{"spiffe://d/operator/ann"}, addr: textAddr("192.0.2.1:5")}))
	passed := leaseholdv1.NewAdminServiceClient(d.as("spiffe://d/manager/m1"))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "leasehold-caller", "token:alice")
	for _, order := range []func() error{
		func() error {
			_, err := ann.DrainOwner(t.Context(), &leaseholdv1.DrainOwnerRequest{Namespace: "sessions", Owner: "cache\na"})
			return err
		},
		func() error {
			_, err := ann.DrainOwner(t.Context(), &leaseholdv1.DrainOwnerRequest{Namespace: "sessions", Owner: "cache-b", DryRun: true})
			return err
		},
		func() error {
			_, err := passed.AddMember(ctx, &leaseholdv1.AddMemberRequest{Name: "m4"})
			return err
		},
		func() error {
			_, err := passed.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Namespace: &leaseholdv1.NamespaceConfig{Name: "new"}})
			return err
		},
		func() error { return listOwners(t.Context(), d.as("spiffe://d/operator/ann"), "sessions") },
	} {
		if err := order(); err != nil {
			t.Fatal(err)
		}
	}
	for _, parts := range [][]string{
		{"caller=spiffe://d/operator/ann", "method=DrainOwner", "from=192.0.2.1", "namespace=sessions", `cache\\na`},
		{"caller=token:alice", "via=spiffe://d/manager/m1", "method=AddMember", "m4"},
		{"caller=token:alice", "via=spiffe://d/manager/m1", "method=CreateNamespace", "namespace=new"},
	} {
		if n := len(d.log.Lines(append(parts, "an order was carried out")...)); n != 1 {
			t.Errorf("%q is there %d times:\n%s", parts, n, d.log)
		}
	}
	if n := len(d.log.Lines("an order")); n != 3 {
		t.Errorf("%d orders are written down:\n%s", n, d.log)
	}
}

// Many refusals of one kind become a line every ten seconds.
func TestRefusalsAreSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, usualFile)
		conn := d.as()
		for range 600 {
			wantCode(t, listOwners(t.Context(), conn, "sessions"), codes.Unauthenticated)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(30 * time.Second)
		if n := len(d.log.Lines("msg=refused ", "nobody", "ListOwners", "neither")); n != 3 {
			t.Errorf("%d refusals are told one by one:\n%s", n, d.log)
		}
		sums := d.log.Lines("refused again and again")
		total := 0
		for _, line := range sums {
			_, times, _ := strings.Cut(line, " times=")
			n, err := strconv.Atoi(strings.TrimSpace(times))
			if err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			total += n
		}
		if len(sums) < 5 || len(sums) > 8 || total != 597 {
			t.Errorf("they are summed up so:\n%s", strings.Join(sums, ""))
		}
		wantCode(t, listOwners(t.Context(), conn, "sessions"), codes.Unauthenticated)
		if n := len(d.log.Lines("msg=refused ")); n != 4 {
			t.Errorf("after a while it is not told again")
		}
	})
}

// Calls within the process are those of the caller that they name.
func TestServeWithinTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, usualFile)
		alice, err := d.policy.Authenticate(secretOfAlice)
		if err != nil {
			t.Fatal(err)
		}
		serve := func(ctx context.Context, method string, r any) error {
			return d.policy.Serve(ctx, method, r, func(ctx context.Context) error {
				if c, ok := access.CallerFrom(ctx); !ok || len(c.Identities()) != 1 {
					t.Errorf("the caller is %v", c)
				}
				if see := d.policy.Visible(ctx); !see("sessions") {
					t.Error("it sees nothing")
				}
				return nil
			})
		}
		drain := &leaseholdv1.DrainOwnerRequest{Namespace: "sessions", Owner: "a"}
		ctx := access.WithCaller(t.Context(), alice)
		wantCode(t, serve(ctx, leaseholdv1.AdminService_DrainOwner_FullMethodName, drain), codes.OK)
		wantCode(t, serve(t.Context(), leaseholdv1.AdminService_DrainOwner_FullMethodName, drain), codes.Unauthenticated, "neither")
		lookup := access.WithCaller(t.Context(), access.Known("spiffe://d/lookup/sessions"))
		wantCode(t, serve(lookup, leaseholdv1.AdminService_DrainOwner_FullMethodName, drain), codes.PermissionDenied, "takes the role operator")
		wantCode(t, serve(lookup, leaseholdv1.AdminService_GetStatus_FullMethodName, &leaseholdv1.GetStatusRequest{}), codes.OK)
		wantCode(t, serve(ctx, leaseholdv1.AdminService_DrainOwner_FullMethodName, "nonsense"), codes.Internal)
		if n := len(d.log.Lines("an order was carried out", "token:alice")); n != 1 {
			t.Errorf("%d orders:\n%s", n, d.log)
		}
		begun := time.Now()
		err = d.policy.Serve(ctx, leaseholdv1.AdminService_Watch_FullMethodName, &leaseholdv1.WatchRequest{}, func(ctx context.Context) error {
			d.write(onlyManagers)
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return nil
		})
		wantCode(t, err, codes.Unauthenticated, "taken away")
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %v", took)
		}
		if _, err := d.policy.Authenticate(secretOfAlice); err == nil {
			t.Error("her token is still worth something")
		}
		sentinel := status.Error(codes.DataLoss, "the handler's own")
		m1 := access.WithCaller(t.Context(), access.Known("spiffe://d/manager/m1"))
		err = d.policy.Serve(m1, leaseholdv1.AdminService_GetStatus_FullMethodName, &leaseholdv1.GetStatusRequest{}, func(context.Context) error { return sentinel })
		if !errors.Is(err, sentinel) {
			t.Errorf("%v", err)
		}
	})
}

// Without a session nothing is visible, and nothing is served.
func TestWhatDidNotComeThroughTheTap(t *testing.T) {
	d := newDesk(t, usualFile)
	if d.policy.Visible(t.Context())("sessions") {
		t.Error("a namespace is visible to nobody")
	}
	if _, ok := access.CallerFrom(t.Context()); ok {
		t.Error("there is a caller")
	}
}
