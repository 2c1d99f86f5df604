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

// The audit log has each operation with its caller, the forwarding manager and the address;
// it has neither dry runs nor reads.
func TestOperationsAreLogged(t *testing.T) {
	d := newFixture(t, defaultFile)
	ann := leaseholdv1.NewAdminServiceClient(d.dial(&fakeCredentials{ids: []string{"spiffe://d/operator/ann"}, addr: textAddr("192.0.2.1:5")}))
	forwarding := leaseholdv1.NewAdminServiceClient(d.as("spiffe://d/manager/m1"))
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
			_, err := forwarding.AddMember(ctx, &leaseholdv1.AddMemberRequest{Name: "m4"})
			return err
		},
		func() error {
			_, err := forwarding.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Namespace: &leaseholdv1.NamespaceConfig{Name: "new"}})
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
		if n := len(d.log.Lines(append(parts, "operation completed")...)); n != 1 {
			t.Errorf("%q has %d lines:\n%s", parts, n, d.log)
		}
	}
	if n := len(d.log.Lines("msg=\"operation ")); n != 3 {
		t.Errorf("%d operations are logged:\n%s", n, d.log)
	}
}

// Many denied calls of one caller and method become one line every ten seconds.
func TestDenialsAreSummarized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile)
		conn := d.as()
		for range 600 {
			wantCode(t, listOwners(t.Context(), conn, "sessions"), codes.Unauthenticated)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(30 * time.Second)
		if n := len(d.log.Lines(`msg="call denied" `, "anonymous", "ListOwners", "neither")); n != 3 {
			t.Errorf("%d denials have a line of their own:\n%s", n, d.log)
		}
		sums := d.log.Lines("further calls denied")
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
			t.Errorf("the summaries are:\n%s", strings.Join(sums, ""))
		}
		wantCode(t, listOwners(t.Context(), conn, "sessions"), codes.Unauthenticated)
		if n := len(d.log.Lines(`msg="call denied" `)); n != 4 {
			t.Errorf("after a pause the first denial has no line")
		}
	})
}

// Calls within the process have the permissions of the caller of WithCaller.
func TestServeAuthorizesTheCallerOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile)
		alice, err := d.policy.Authenticate(aliceToken)
		if err != nil {
			t.Fatal(err)
		}
		serve := func(ctx context.Context, method string, r any) error {
			return d.policy.Serve(ctx, method, r, func(ctx context.Context) error {
				if c, ok := access.CallerFrom(ctx); !ok || len(c.Identities()) != 1 {
					t.Errorf("the caller is %v", c)
				}
				if see := d.policy.Visible(ctx); !see("sessions") {
					t.Error("the namespace is not visible")
				}
				return nil
			})
		}
		drain := &leaseholdv1.DrainOwnerRequest{Namespace: "sessions", Owner: "a"}
		ctx := access.WithCaller(t.Context(), alice)
		wantCode(t, serve(ctx, leaseholdv1.AdminService_DrainOwner_FullMethodName, drain), codes.OK)
		wantCode(t, serve(t.Context(), leaseholdv1.AdminService_DrainOwner_FullMethodName, drain), codes.Unauthenticated, "neither")
		lookup := access.WithCaller(t.Context(), access.Known("spiffe://d/lookup/sessions"))
		wantCode(t, serve(lookup, leaseholdv1.AdminService_DrainOwner_FullMethodName, drain), codes.PermissionDenied, "requires the role operator")
		wantCode(t, serve(lookup, leaseholdv1.AdminService_GetStatus_FullMethodName, &leaseholdv1.GetStatusRequest{}), codes.OK)
		wantCode(t, serve(ctx, leaseholdv1.AdminService_DrainOwner_FullMethodName, "nonsense"), codes.Internal)
		if n := len(d.log.Lines("operation completed", "token:alice")); n != 1 {
			t.Errorf("%d operations:\n%s", n, d.log)
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
		wantCode(t, err, codes.Unauthenticated, "removed")
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the call ended after %v", took)
		}
		if _, err := d.policy.Authenticate(aliceToken); err == nil {
			t.Error("the removed token is accepted")
		}
		sentinel := status.Error(codes.DataLoss, "the handler's own")
		m1 := access.WithCaller(t.Context(), access.Known("spiffe://d/manager/m1"))
		err = d.policy.Serve(m1, leaseholdv1.AdminService_GetStatus_FullMethodName, &leaseholdv1.GetStatusRequest{}, func(context.Context) error { return sentinel })
		if !errors.Is(err, sentinel) {
			t.Errorf("%v", err)
		}
	})
}

// A context that did not pass the tap has no caller and sees no namespace.
func TestContextWithoutSession(t *testing.T) {
	d := newFixture(t, defaultFile)
	if d.policy.Visible(t.Context())("sessions") {
		t.Error("a namespace is visible without a caller")
	}
	if _, ok := access.CallerFrom(t.Context()); ok {
		t.Error("the context has a caller")
	}
}
