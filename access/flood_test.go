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

// Who makes up methods makes up no lines, and nothing is kept of them.
func TestRefusalsOfMadeUpMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, usualFile)
		nobody, roleless := d.as(), d.as("spiffe://d/nobody")
		for i := range 500 {
			method := fmt.Sprintf("/leasehold.v1.AdminService/%d%s", i, strings.Repeat("x", 10_000))
			wantCode(t, nobody.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}), codes.Unauthenticated)
			wantCode(t, roleless.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}), codes.PermissionDenied)
		}
		time.Sleep(30 * time.Second)
		if n := len(d.log.Lines("msg=refused ")); n != 6 {
			t.Errorf("%d refusals are told one by one", n)
		}
		if sums := d.log.Lines("refused again and again", "times=497"); len(sums) != 2 {
			t.Errorf("they are summed up so:\n%s", d.log.Lines("again and again"))
		}
	})
}

// Those whom nobody knows may have many addresses. After some of them, the log has their
// number alone, and what parties that are known were refused as before.
func TestRefusalsOfManyStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, usualFile)
		for i := range 1000 {
			conn := d.dial(&papers{addr: textAddr(fmt.Sprintf("[2001:db8::%x]:1", i))})
			wantCode(t, listOwners(t.Context(), conn, "sessions"), codes.Unauthenticated)
			_ = conn.Close()
		}
		wantCode(t, listOwners(t.Context(), d.as("spiffe://d/nobody"), "sessions"), codes.PermissionDenied)
		time.Sleep(30 * time.Second)
		if n := len(d.log.Lines("msg=refused ", "nobody ")); n > 260 {
			t.Errorf("%d strangers are told one by one", n)
		}
		if n := len(d.log.Lines("msg=refused ", "spiffe://d/nobody")); n != 1 {
			t.Errorf("who is known is told %d times", n)
		}
		if sums := d.log.Lines("refused again and again", "strangers"); len(sums) != 1 {
			t.Errorf("they are summed up so:\n%s", d.log.Lines("again and again"))
		}
	})
}
