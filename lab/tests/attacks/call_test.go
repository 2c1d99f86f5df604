//go:build linux

package attacks

import (
	"context"
	"crypto/tls"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Methods under attack, besides those in frames_test.go.
const (
	create    = leaseholdv1.AdminService_CreateNamespace_FullMethodName
	update    = leaseholdv1.AdminService_UpdateNamespace_FullMethodName
	remove    = leaseholdv1.AdminService_DeleteNamespace_FullMethodName
	drain     = leaseholdv1.AdminService_DrainOwner_FullMethodName
	move      = leaseholdv1.AdminService_MoveRange_FullMethodName
	rebalance = leaseholdv1.AdminService_Rebalance_FullMethodName
	members   = leaseholdv1.AdminService_ListMembers_FullMethodName
	addMember = leaseholdv1.AdminService_AddMember_FullMethodName
	expel     = leaseholdv1.AdminService_RemoveMember_FullMethodName
	owners    = leaseholdv1.AdminService_ListOwners_FullMethodName
	watch     = leaseholdv1.AdminService_Watch_FullMethodName
	share     = storagev1.CouncilService_Share_FullMethodName
	reflects  = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
)

// defaultRequest returns a request of a method that concerns the honest namespace.
func defaultRequest(method string) proto.Message {
	config := &leaseholdv1.NamespaceConfig{Name: namespace, Policy: "even"}
	switch method {
	case hold:
		return holdRequest(namespace, "owner-0", 9)
	case follow:
		return &leaseholdv1.FollowRequest{Version: wire.Version, Namespace: namespace, Seq: 1}
	case create:
		return &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{Name: "third", Policy: "even"}}
	case update:
		return &leaseholdv1.UpdateNamespaceRequest{Version: wire.Version, Namespace: config}
	case remove:
		return &leaseholdv1.DeleteNamespaceRequest{Version: wire.Version, Name: namespace}
	case drain:
		return &leaseholdv1.DrainOwnerRequest{Version: wire.Version, Namespace: namespace, Owner: "owner-0"}
	case move:
		return &leaseholdv1.MoveRangeRequest{Version: wire.Version, Namespace: namespace, Owner: "owner-0"}
	case getStatus, members, addMember, expel, share, reflects:
		return &leaseholdv1.GetStatusRequest{Version: wire.Version}
	}
	// All others name the version and the namespace as this one does.
	return &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: namespace}
}

// holdRequest returns an owner's first message.
func holdRequest(ns, owner string, session byte) *leaseholdv1.HoldRequest {
	return &leaseholdv1.HoldRequest{
		Version: wire.Version, Namespace: ns, Seq: 1,
		Holder: &leaseholdv1.Holder{Owner: owner, Session: append(make([]byte, 15), session), Addr: "127.0.0.1:1", Weight: 1},
	}
}

// dialWith returns a connection with a client certificate, or without one.
func (c *testbed) dialWith(t *testing.T, cert *tls.Certificate, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+c.addr,
		append([]grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(c.secured.clientTLS(cert)))}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // no call is in progress
	return conn
}

// call calls a method with messages, and returns its error; nil if a reply is received.
func call(ctx context.Context, conn *grpc.ClientConn, method string, messages ...proto.Message) error {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if stream.SendMsg(m) != nil {
			break // RecvMsg returns the reason
		}
	}
	if method != hold && method != follow {
		_ = stream.CloseSend() // fails if the stream has ended
	}
	return stream.RecvMsg(new(emptypb.Empty))
}

// A callCase is a call with a valid certificate, or without one.
type callCase struct {
	name    string
	cert    func(t *testing.T, k *authority) *tls.Certificate // nil: none
	header  []string                                          // names and values
	method  string
	request proto.Message // nil: defaultRequest
	want    codes.Code
	reason  string
	caller  string // the caller in the audit record; "" if unidentified
}

const (
	mallory  = "spiffe://attacks.test/owner/other/mallory"
	landlord = "spiffe://attacks.test/operator/landlord"
	manager2 = "spiffe://attacks.test/manager/m2"
)

// calls returns calls that are refused.
func calls() (all []callCase) {
	add := func(c callCase) { all = append(all, c) }
	// Callers without an identity.
	for _, method := range []string{hold, follow, getStatus, drain, share, reflects} {
		add(callCase{name: "no credentials: " + method, method: method, want: codes.Unauthenticated, reason: "neither"})
	}
	named := withCommonName("owner/honest/owner-0")
	for name, cert := range map[string]func(*testing.T, *authority) *tls.Certificate{
		"the right name only as common name": signedBy(rootCA, named, withURIs()),
		"the right name as mail address":     signedBy(rootCA, withURIs(), withMails("owner-0@attacks.test")),
		"only the right IP address":          signedBy(rootCA, withURIs(), withAddresses("127.0.0.1")),
		"a host name with a wildcard":        signedBy(rootCA, withURIs(), withHosts("*.attacks.test")),
		"a token's name in a certificate":    signedBy(secondCA, withURIs(&url.URL{Scheme: "token", Opaque: "reader"})),
		"a host's identity written as URI":   signedBy(secondCA, withURIs(&url.URL{Scheme: "dns", Opaque: "owner-0"})),
	} {
		add(callCase{name: name, cert: cert, method: hold, want: codes.Unauthenticated, reason: "no identity"})
	}
	// Callers with another identity.
	for name, c := range map[string]callCase{
		"the right common name, another identity": {cert: signedBy(rootCA, named, withIdentity("owner/other/mallory")), reason: "has no role for this in namespace", caller: mallory},
		"an identity that has no rule":            {cert: signedBy(rootCA, withIdentity("stranger")), reason: "has no role", caller: "spiffe://attacks.test/stranger"},
		"an identity in capitals":                 {cert: signedBy(rootCA, withIdentity("Owner/honest/owner-0")), reason: "has no role", caller: "spiffe://attacks.test/Owner/honest/owner-0"},
		"an identity with a longer path":          {cert: signedBy(rootCA, withIdentity("owner/honest/owner-0/x")), reason: "has no role", caller: "spiffe://attacks.test/owner/honest/owner-0/x"},
		"an identity with a shorter path":         {cert: signedBy(rootCA, withIdentity("owner/honest")), reason: "has no role", caller: "spiffe://attacks.test/owner/honest"},
		"an identity of another domain":           {cert: signedBy(secondCA, withURIs(&url.URL{Scheme: "spiffe", Host: "attacks.test.evil", Path: "/owner/honest/owner-0"})), reason: "has no role", caller: "spiffe://attacks.test.evil"},
		"the owner's name as host name":           {cert: signedBy(rootCA, withURIs(), withHosts("owner-0")), reason: "has no role", caller: "dns:owner-0"},
		"the owner of another namespace":          {cert: certificateOf("owner/other/mallory"), reason: "has no role for this in namespace", caller: mallory},
		"another owner's name":                    {cert: certificateOf("owner/honest/traitor"), reason: `may not use the owner name "owner-0"`, caller: "spiffe://attacks.test/owner/honest/traitor"},
		"a lookup":                                {cert: certificateOf("lookup/honest"), reason: "has the role lookup", caller: "spiffe://attacks.test/lookup/honest"},
		"an operator":                             {cert: certificateOf("operator/chief"), reason: "has the role operator", caller: "spiffe://attacks.test/operator/chief"},
		"a manager":                               {cert: certificateOf("manager/m2"), reason: "has the role manager", caller: manager2},
	} {
		c.name, c.method, c.want = "joins as owner-0: "+name, hold, codes.PermissionDenied
		add(c)
	}
	for name, hostile := range map[string]string{
		"no name": "", "a name with a new line": "traitor\nlevel=INFO msg=all-is-well", "a name with dots": "traitor/../owner-0",
		"a name that looks alike": "trаitor", "a name with a zero": "traitor\x00", "a pattern": "{name}", "a name in capitals": "Traitor",
		"a name of 60,000 bytes": strings.Repeat("n", 60_000), "a script": "<script>alert(1)</script>", "right to left": "\u202etraitor",
	} {
		add(callCase{name: "hostile owner: " + name, cert: certificateOf("owner/honest/traitor"), method: hold, request: holdRequest(namespace, hostile, 8), want: codes.PermissionDenied, reason: "may not use the owner name", caller: "spiffe://attacks.test/owner/honest/traitor"})
	}
	for name, hostile := range map[string]string{
		"none": "", "dots": "../honest", "a star": "*", "capitals": "HONEST", "a zero": "honest\x00", "a space": "honest ", "60,000 bytes": strings.Repeat("n", 60_000),
	} {
		add(callCase{name: "hostile namespace: " + name, cert: certificateOf("owner/other/mallory"), method: follow, request: &leaseholdv1.FollowRequest{Version: wire.Version, Namespace: hostile, Seq: 1}, want: codes.PermissionDenied, reason: "has no role for this in namespace", caller: mallory})
	}
	// Callers that read or write without the permission.
	for _, method := range []string{
		follow, owners, watch, leaseholdv1.AdminService_ListRanges_FullMethodName, leaseholdv1.AdminService_LookupKey_FullMethodName,
		leaseholdv1.AdminService_ListHistory_FullMethodName, leaseholdv1.AdminService_ListChanges_FullMethodName, leaseholdv1.AdminService_ListHotKeys_FullMethodName,
		leaseholdv1.AdminService_ListLookups_FullMethodName, leaseholdv1.AdminService_ListMoves_FullMethodName,
	} {
		add(callCase{name: "a lookup of another namespace: " + method, cert: certificateOf("lookup/other"), method: method, want: codes.PermissionDenied, reason: "has no role for this in namespace", caller: "spiffe://attacks.test/lookup/other"})
	}
	for _, method := range []string{getStatus, follow, owners, create, update, remove, drain, move, rebalance, members, addMember, expel, share} {
		add(callCase{name: "an owner: " + method, cert: certificateOf("owner/honest/traitor"), method: method, want: codes.PermissionDenied, reason: "has the role owner", caller: "spiffe://attacks.test/owner/honest/traitor"})
	}
	for _, method := range []string{create, remove, drain, members, share} {
		add(callCase{name: "a lookup: " + method, cert: certificateOf("lookup/other"), method: method, want: codes.PermissionDenied, reason: "has the role lookup", caller: "spiffe://attacks.test/lookup/other"})
	}
	for _, method := range []string{create, update, remove, drain, move, rebalance} {
		add(callCase{name: "an operator of another namespace: " + method, cert: certificateOf("operator/landlord"), method: method, want: codes.PermissionDenied, reason: "has no role for this in namespace", caller: landlord})
	}
	for _, method := range []string{members, addMember, expel} {
		add(callCase{name: "an operator of another namespace: " + method, cert: certificateOf("operator/landlord"), method: method, want: codes.PermissionDenied, reason: "requires an operator of all", caller: landlord})
	}
	for _, method := range []string{create, remove, drain} {
		add(callCase{name: "a manager: " + method, cert: certificateOf("manager/m2"), method: method, want: codes.PermissionDenied, reason: "has the role manager", caller: manager2})
	}
	add(callCase{name: "an operator: " + share, cert: certificateOf("operator/chief"), method: share, want: codes.PermissionDenied, reason: "has the role operator", caller: "spiffe://attacks.test/operator/chief"})
	return append(all, spoofs()...)
}

// spoofs returns calls that claim to be forwarded by a manager.
func spoofs() []callCase {
	const caller, forwarded = "leasehold-caller", "leasehold-forwarded"
	chief := []string{forwarded, "1", caller, "spiffe://attacks.test/operator/chief"}
	return []callCase{
		{name: "forwarded without credentials", header: chief, method: drain, want: codes.Unauthenticated, reason: "requires a manager's certificate"},
		{name: "forwarded by an owner", cert: certificateOf("owner/other/mallory"), header: chief, method: drain, want: codes.PermissionDenied, reason: "only managers may forward", caller: "spiffe://attacks.test/operator/chief"},
		{name: "forwarded by an operator", cert: certificateOf("operator/landlord"), header: chief, method: remove, want: codes.PermissionDenied, reason: "only managers may forward", caller: "spiffe://attacks.test/operator/chief"},
		{name: "forwarded by a lookup as an owner", cert: certificateOf("lookup/other"), header: []string{caller, "spiffe://attacks.test/owner/honest/owner-0"}, method: hold, want: codes.PermissionDenied, reason: "only managers may forward", caller: "spiffe://attacks.test/owner/honest/owner-0"},
		{name: "forwarded by an owner that also claims to be a manager", cert: certificateOf("owner/other/mallory"), header: append([]string{caller, manager2}, chief...), method: drain, want: codes.PermissionDenied, reason: "only managers may forward", caller: manager2},
		{name: "forwarded without a caller", cert: certificateOf("manager/m2"), header: []string{forwarded, "1"}, method: remove, want: codes.PermissionDenied, reason: "without its caller", caller: manager2},
		{name: "forwarded for a malformed identity", cert: certificateOf("manager/m2"), header: []string{caller, "x y"}, method: drain, want: codes.PermissionDenied, reason: "invalid identity", caller: manager2},
		{name: "forwarded for a pattern", cert: certificateOf("manager/m2"), header: []string{caller, "spiffe://attacks.test/owner/honest/{name}"}, method: hold, want: codes.PermissionDenied, reason: "invalid identity", caller: manager2},
		{name: "forwarded for a caller without permission", cert: certificateOf("manager/m2"), header: []string{caller, mallory}, method: drain, want: codes.PermissionDenied, reason: "has the role", caller: mallory},
		{name: "forwarded for an expired token", cert: certificateOf("manager/m2"), header: []string{caller, "token:old"}, method: drain, want: codes.Unauthenticated, reason: "expired", caller: "token:old"},
		{name: "a caller that claims to be a standby", cert: certificateOf("operator/landlord"), header: []string{"leasehold-manager-bin", "evil.example:7400", forwarded, "1"}, method: getStatus, want: codes.PermissionDenied, reason: "without its caller", caller: landlord},
	}
}

// TestCalls: calls without permission are refused and audited.
func TestCalls(t *testing.T) {
	t.Parallel()
	k := newAuthority(t)
	c := newTestbed(t, settings{secured: k})
	for _, test := range calls() {
		c.attack(t, test.name, func(t *testing.T) { c.refuses(t, &test) })
	}
	for _, l := range c.lines(t) {
		if l.Msg == "all-is-well" {
			t.Error("a name was written to the log as a separate line")
		}
	}
}

// refuses runs a case.
func (c *testbed) refuses(t *testing.T, test *callCase) {
	t.Helper()
	var cert *tls.Certificate
	if test.cert != nil {
		cert = test.cert(t, c.secured)
	}
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), test.header...), eventTimeout)
	defer cancel()
	request := test.request
	if request == nil {
		request = defaultRequest(test.method)
	}
	err := call(ctx, c.dialWith(t, cert), test.method, request)
	if status.Code(err) != test.want || !strings.Contains(status.Convert(err).Message(), test.reason) {
		t.Errorf("outcome: %v; want %v: %s", err, test.want, test.reason)
	}
	if test.caller != "" {
		c.wantAudited(t, test.caller, test.method, test.reason)
	}
}

// shortContext returns a context with a deadline of 30 s.
func shortContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
