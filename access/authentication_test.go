package access_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// listOwners makes a call that requires a reading role in the namespace.
func listOwners(ctx context.Context, conn grpc.ClientConnInterface, namespace string) error {
	_, err := leaseholdv1.NewAdminServiceClient(conn).ListOwners(ctx, &leaseholdv1.ListOwnersRequest{Namespace: namespace})
	return err
}

func wantCode(t *testing.T, err error, code codes.Code, parts ...string) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("%v (%v), want %v", err, status.Code(err), code)
	}
	for _, part := range parts {
		if part != "" && err == nil || err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not contain %q: %v", part, err)
		}
	}
	if code == codes.Unauthenticated || code == codes.PermissionDenied {
		if kind := leasehold.KindOf(wire.ToError(err)); kind != leasehold.ErrDenied {
			t.Errorf("the kind of the error is %v", kind)
		}
	}
}

// Calls without valid credentials are denied with the reason.
func TestAuthentication(t *testing.T) {
	const expired = "leasehold_expired-0123456789"
	d := newFixture(t, defaultFile+"  - name: old\n    sha256: "+hashOf(expired)+"\n    expires: 2001-01-01\n")
	d.revoke("spiffe://d/lookup/revoked")
	bearer := func(values ...string) context.Context {
		ctx := t.Context()
		for _, v := range values {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", v)
		}
		return ctx
	}
	many := make([]string, 33)
	for i := range many {
		many[i] = "dns:h" + strings.Repeat("x", i+1)
	}
	remote, loopback := textAddr("192.0.2.1:1234"), textAddr("127.0.0.1:1234")
	for name, test := range map[string]struct {
		fakeCredentials fakeCredentials
		ctx             context.Context
		code            codes.Code
		want            string
	}{
		"nothing":             {fakeCredentials{}, t.Context(), codes.Unauthenticated, "neither"},
		"not verified":        {fakeCredentials{ids: []string{"spiffe://d/lookup/sessions"}, unverified: true}, t.Context(), codes.Unauthenticated, "did not verify"},
		"no name":             {fakeCredentials{ids: []string{"nameless"}}, t.Context(), codes.Unauthenticated, "no identity"},
		"two SPIFFE IDs":      {fakeCredentials{ids: []string{"spiffe://d/lookup/sessions", "spiffe://d/b"}}, t.Context(), codes.Unauthenticated, "no identity"},
		"too many names":      {fakeCredentials{ids: many}, t.Context(), codes.Unauthenticated, "too many identities"},
		"a token as a URI":    {fakeCredentials{ids: []string{"token:alice"}}, t.Context(), codes.Unauthenticated, "no identity"},
		"revoked":             {fakeCredentials{ids: []string{"spiffe://d/lookup/revoked"}}, t.Context(), codes.Unauthenticated, "was revoked"},
		"no role":             {fakeCredentials{ids: []string{"spiffe://d/nobody"}}, t.Context(), codes.PermissionDenied, "has no role"},
		"a token":             {fakeCredentials{}, bearer("Bearer " + aliceToken), codes.OK, ""},
		"a token in capitals": {fakeCredentials{}, bearer("BEARER " + aliceToken), codes.OK, ""},
		"wrong token":         {fakeCredentials{}, bearer("Bearer " + aliceToken[:len(aliceToken)-1] + "x"), codes.Unauthenticated, "not known"},
		"token cut short":     {fakeCredentials{}, bearer("Bearer " + aliceToken[:len(aliceToken)-1]), codes.Unauthenticated, "not known"},
		"its hash":            {fakeCredentials{}, bearer("Bearer " + hashOf(aliceToken)), codes.Unauthenticated, "not known"},
		"short token":         {fakeCredentials{}, bearer("Bearer x"), codes.Unauthenticated, "1 bytes"},
		"no token":            {fakeCredentials{}, bearer("Bearer "), codes.Unauthenticated, "0 bytes"},
		"long token":          {fakeCredentials{}, bearer("Bearer " + strings.Repeat("x", 300)), codes.Unauthenticated, "300 bytes"},
		"expired token":       {fakeCredentials{}, bearer("Bearer " + expired), codes.Unauthenticated, "expired at 2001-01-01"},
		"two tokens":          {fakeCredentials{}, bearer("Bearer "+aliceToken, "Bearer "+aliceToken), codes.Unauthenticated, "2 authorization headers"},
		"a password":          {fakeCredentials{}, bearer("Basic YTpi"), codes.Unauthenticated, "must have the form"},
		"bad token, good certificate": {
			fakeCredentials{ids: []string{"spiffe://d/lookup/sessions"}}, bearer("Bearer " + strings.Repeat("x", 30)), codes.Unauthenticated, "not known",
		},
		"good token, certificate without a role": {fakeCredentials{ids: []string{"spiffe://d/nobody"}}, bearer("Bearer " + aliceToken), codes.OK, ""},
		"plain text":                             {fakeCredentials{plain: true, addr: remote}, bearer("Bearer " + aliceToken), codes.Unauthenticated, "in plain text"},
		"plain text on the loopback":             {fakeCredentials{plain: true, addr: loopback}, bearer("Bearer " + aliceToken), codes.OK, ""},
		"plain text, and a host name that looks like it": {
			fakeCredentials{plain: true, addr: textAddr("127.0.0.1.example.org:1")}, bearer("Bearer " + aliceToken), codes.Unauthenticated, "in plain text",
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantCode(t, listOwners(test.ctx, d.dial(&test.fakeCredentials), "sessions"), test.code, test.want)
		})
	}
	if log := d.log.String(); strings.Contains(log, aliceToken) || strings.Contains(log, expired) || strings.Contains(log, hashOf(aliceToken)) {
		t.Errorf("the log has a token:\n%s", log)
	}
}

// A call with a long timeout is denied after the tap, because gRPC keeps the timers of
// calls that the tap denies.
func TestCallsWithLongTimeoutsAreDenied(t *testing.T) {
	d := newFixture(t, defaultFile)
	conn := d.as()
	for _, timeout := range []time.Duration{4 * time.Second, time.Hour} {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		wantCode(t, listOwners(ctx, conn, "sessions"), codes.Unauthenticated, "neither")
		stream, err := leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
		if err == nil {
			_, err = stream.Recv()
		}
		wantCode(t, err, codes.Unauthenticated, "neither")
		cancel()
	}
}

// invalidCodec encodes every message as invalid protobuf.
type invalidCodec struct{}

func (invalidCodec) Marshal(any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(bytes.Repeat([]byte{0xff}, 64))}, nil
}
func (invalidCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
func (invalidCodec) Name() string                         { return "proto" }

// A denied call is denied before its message is decoded.
func TestDeniedMessagesAreNotDecoded(t *testing.T) {
	d := newFixture(t, defaultFile)
	const method = leaseholdv1.AdminService_DrainOwner_FullMethodName
	for id, code := range map[string]codes.Code{
		"": codes.Unauthenticated, "spiffe://d/lookup/sessions": codes.PermissionDenied, "spiffe://d/operator/ann": codes.Internal,
	} {
		err := d.as(strings.Fields(id)...).Invoke(t.Context(), method, "", "", grpc.ForceCodecV2(invalidCodec{}))
		if status.Code(err) != code {
			t.Errorf("%q: %v, want %v", id, err, code)
		}
	}
}

// An unknown method is Unimplemented for callers that have a role; the others are denied.
func TestUnknownMethods(t *testing.T) {
	d := newFixture(t, defaultFile)
	for id, code := range map[string]codes.Code{"": codes.Unauthenticated, "spiffe://d/nobody": codes.PermissionDenied, "spiffe://d/lookup/sessions": codes.Unimplemented} {
		for _, timeout := range []time.Duration{4 * time.Second, time.Hour} {
			for _, method := range []string{"/leasehold.v1.AdminService/Nonsense", "/leasehold.v1.Nonsense/GetStatus"} {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				err := d.as(strings.Fields(id)...).Invoke(ctx, method, &leaseholdv1.GetStatusRequest{}, &leaseholdv1.GetStatusResponse{})
				if status.Code(err) != code {
					t.Errorf("%q, %v: %v, want %v", id, timeout, err, code)
				}
				cancel()
			}
		}
	}
}

// Bearer credentials can be printed without the token.
func TestBearerDoesNotPrintTheToken(t *testing.T) {
	b := access.Bearer(aliceToken, false)
	if !b.RequireTransportSecurity() || access.Bearer("", true).RequireTransportSecurity() {
		t.Error("the token is sent in plain text, or plain has no effect")
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, b); strings.Contains(text, "0123456789") {
			t.Errorf("%s prints %s", format, text)
		}
	}
	d := newFixture(t, defaultFile)
	if err := listOwners(t.Context(), d.dial(&fakeCredentials{}, grpc.WithPerRPCCredentials(b)), "sessions"); err != nil {
		t.Error(err)
	}
}
