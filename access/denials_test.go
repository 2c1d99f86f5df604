package access_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Calls of unknown methods are counted as one method, and their names are not retained.
func TestDenialsOfUnknownMethodsAreCountedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile)
		anonymous, roleless := d.as(), d.as("spiffe://d/nobody")
		for i := range 500 {
			method := fmt.Sprintf("/leasehold.v1.AdminService/%d%s", i, strings.Repeat("x", 10_000))
			wantCode(t, anonymous.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}), codes.Unauthenticated)
			wantCode(t, roleless.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}), codes.PermissionDenied)
		}
		time.Sleep(30 * time.Second)
		if n := len(d.log.Lines(`msg="call denied" `)); n != 6 {
			t.Errorf("%d denials have a line of their own", n)
		}
		if sums := d.log.Lines("further calls denied", "times=497"); len(sums) != 2 {
			t.Errorf("the summaries are:\n%s", d.log.Lines("further calls denied"))
		}
	})
}

// Anonymous callers from more than maxAnonymous addresses are counted together. Denied calls
// of identities are logged as before.
func TestDenialsOfManyAddressesAreCountedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, defaultFile)
		for i := range 1000 {
			conn := d.dial(&fakeCredentials{addr: textAddr(fmt.Sprintf("[2001:db8::%x]:1", i))})
			wantCode(t, listOwners(t.Context(), conn, "sessions"), codes.Unauthenticated)
			_ = conn.Close()
		}
		wantCode(t, listOwners(t.Context(), d.as("spiffe://d/nobody"), "sessions"), codes.PermissionDenied)
		time.Sleep(30 * time.Second)
		if n := len(d.log.Lines(`msg="call denied" `, "caller=anonymous ")); n > 260 {
			t.Errorf("%d anonymous callers have a line of their own", n)
		}
		if n := len(d.log.Lines(`msg="call denied" `, "spiffe://d/nobody")); n != 1 {
			t.Errorf("the identity's denied call has %d lines, want 1", n)
		}
		if sums := d.log.Lines("further calls denied", "other anonymous callers"); len(sums) != 1 {
			t.Errorf("the summaries are:\n%s", d.log.Lines("further calls denied"))
		}
	})
}
