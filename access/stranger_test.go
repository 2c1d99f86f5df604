package access_test

import (
	"bytes"
	"context"
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

// listOwners asks for something that takes a role in the namespace.
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
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if code == codes.Unauthenticated || code == codes.PermissionDenied {
		if kind := leasehold.KindOf(wire.ToError(err)); kind != leasehold.ErrDenied {
			t.Errorf("its kind is %v", kind)
		}
	}
}

// Who cannot show who it is gets nowhere, and hears why.
func TestStrangers(t *testing.T) {
	const expired = "leasehold_expired-0123456789"
	d := newDesk(t, usualFile+"  - name: old\n    sha256: "+hashOf(expired)+"\n    expires: 2001-01-01\n")
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
		papers papers
		ctx    context.Context
		code   codes.Code
		says   string
	}{
		"nothing":             {papers{}, t.Context(), codes.Unauthenticated, "neither"},
		"not verified":        {papers{ids: []string{"spiffe://d/lookup/sessions"}, unverified: true}, t.Context(), codes.Unauthenticated, "not verified"},
		"no name":             {papers{ids: []string{"nameless"}}, t.Context(), codes.Unauthenticated, "no identity"},
		"two SPIFFE IDs":      {papers{ids: []string{"spiffe://d/lookup/sessions", "spiffe://d/b"}}, t.Context(), codes.Unauthenticated, "no identity"},
		"too many names":      {papers{ids: many}, t.Context(), codes.Unauthenticated, "more than one caller may have"},
		"a token as a URI":    {papers{ids: []string{"token:alice"}}, t.Context(), codes.Unauthenticated, "no identity"},
		"revoked":             {papers{ids: []string{"spiffe://d/lookup/revoked"}}, t.Context(), codes.Unauthenticated, "was revoked"},
		"no role":             {papers{ids: []string{"spiffe://d/nobody"}}, t.Context(), codes.PermissionDenied, "has no role"},
		"a token":             {papers{}, bearer("Bearer " + secretOfAlice), codes.OK, ""},
		"a token in capitals": {papers{}, bearer("BEARER " + secretOfAlice), codes.OK, ""},
		"wrong token":         {papers{}, bearer("Bearer " + secretOfAlice[:len(secretOfAlice)-1] + "x"), codes.Unauthenticated, "not known"},
		"token cut short":     {papers{}, bearer("Bearer " + secretOfAlice[:len(secretOfAlice)-1]), codes.Unauthenticated, "not known"},
		"its hash":            {papers{}, bearer("Bearer " + hashOf(secretOfAlice)), codes.Unauthenticated, "not known"},
		"short token":         {papers{}, bearer("Bearer x"), codes.Unauthenticated, "1 bytes"},
		"no token":            {papers{}, bearer("Bearer "), codes.Unauthenticated, "0 bytes"},
		"long token":          {papers{}, bearer("Bearer " + strings.Repeat("x", 300)), codes.Unauthenticated, "300 bytes"},
		"expired token":       {papers{}, bearer("Bearer " + expired), codes.Unauthenticated, "expired at 2001-01-01"},
		"two tokens":          {papers{}, bearer("Bearer "+secretOfAlice, "Bearer "+secretOfAlice), codes.Unauthenticated, "2 authorization headers"},
		"a password":          {papers{}, bearer("Basic YTpi"), codes.Unauthenticated, "not of the form"},
		"bad token, good certificate": {
			papers{ids: []string{"spiffe://d/lookup/sessions"}}, bearer("Bearer " + strings.Repeat("x", 30)), codes.Unauthenticated, "not known",
		},
		"good token, certificate without a role": {papers{ids: []string{"spiffe://d/nobody"}}, bearer("Bearer " + secretOfAlice), codes.OK, ""},
		"plain text":                             {papers{plain: true, addr: remote}, bearer("Bearer " + secretOfAlice), codes.Unauthenticated, "in plain text"},
		"plain text on the loopback":             {papers{plain: true, addr: loopback}, bearer("Bearer " + secretOfAlice), codes.OK, ""},
		"plain text, and a host name that looks like it": {
			papers{plain: true, addr: textAddr("127.0.0.1.example.org:1")}, bearer("Bearer " + secretOfAlice), codes.Unauthenticated, "in plain text",
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantCode(t, listOwners(test.ctx, d.dial(&test.papers), "sessions"), test.code, test.says)
		})
	}
	if log := d.log.String(); strings.Contains(log, secretOfAlice) || strings.Contains(log, expired) || strings.Contains(log, hashOf(secretOfAlice)) {
		t.Errorf("the log has a token:\n%s", log)
	}
}

// gRPC keeps the timer of a call that the tap refuses. One with a deadline far away
// is refused later, and as well.
func TestStrangersWithTime(t *testing.T) {
	d := newDesk(t, usualFile)
	conn := d.as()
	for _, patience := range []time.Duration{4 * time.Second, time.Hour} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		wantCode(t, listOwners(ctx, conn, "sessions"), codes.Unauthenticated, "neither")
		stream, err := leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
		if err == nil {
			_, err = stream.Recv()
		}
		wantCode(t, err, codes.Unauthenticated, "neither")
		cancel()
	}
}

// rubbish is a message that no codec can read.
type rubbish struct{}

func (rubbish) Marshal(any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(bytes.Repeat([]byte{0xff}, 64))}, nil
}
func (rubbish) Unmarshal(mem.BufferSlice, any) error { return nil }
func (rubbish) Name() string                         { return "proto" }

// Of what is sent by those who may not, nothing is read.
func TestNothingIsReadOfStrangers(t *testing.T) {
	d := newDesk(t, usualFile)
	const method = leaseholdv1.AdminService_DrainOwner_FullMethodName
	for id, code := range map[string]codes.Code{
		"": codes.Unauthenticated, "spiffe://d/lookup/sessions": codes.PermissionDenied, "spiffe://d/operator/ann": codes.Internal,
	} {
		err := d.as(strings.Fields(id)...).Invoke(t.Context(), method, "", "", grpc.ForceCodecV2(rubbish{}))
		if status.Code(err) != code {
			t.Errorf("%q: %v, want %v", id, err, code)
		}
	}
}

// What does not exist is not found by those who have a role, and nobody else hears
// that.
func TestUnknownMethods(t *testing.T) {
	d := newDesk(t, usualFile)
	for id, code := range map[string]codes.Code{"": codes.Unauthenticated, "spiffe://d/nobody": codes.PermissionDenied, "spiffe://d/lookup/sessions": codes.Unimplemented} {
		for _, patience := range []time.Duration{4 * time.Second, time.Hour} {
			for _, method := range []string{"/leasehold.v1.AdminService/Nonsense", "/leasehold.v1.Nonsense/GetStatus"} {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				err := d.as(strings.Fields(id)...).Invoke(ctx, method, &leaseholdv1.GetStatusRequest{}, &leaseholdv1.GetStatusResponse{})
				if status.Code(err) != code {
					t.Errorf("%q, %v: %v, want %v", id, patience, err, code)
				}
				cancel()
			}
		}
	}
}

// The token is in nothing that prints its credentials.
func TestBearerKeepsQuiet(t *testing.T) {
	b := access.Bearer(secretOfAlice, false)
	if !b.RequireTransportSecurity() || access.Bearer("", true).RequireTransportSecurity() {
		t.Error("it is shown in plain text, or not where that is meant")
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := sprint(format, b); strings.Contains(text, "0123456789") {
			t.Errorf("%s prints %s", format, text)
		}
	}
	d := newDesk(t, usualFile)
	if err := listOwners(t.Context(), d.dial(&papers{}, grpc.WithPerRPCCredentials(b)), "sessions"); err != nil {
		t.Error(err)
	}
}
