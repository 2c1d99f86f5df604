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

// The methods that are called besides those of frames.
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

// about is a request of a method that would do something in the namespace of the honest.
func about(method string) proto.Message {
	config := &leaseholdv1.NamespaceConfig{Name: namespace, Policy: "even"}
	switch method {
	case hold:
		return holding(namespace, "owner-0", 9)
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
	case asking, members, addMember, expel, share, reflects:
		return &leaseholdv1.GetStatusRequest{Version: wire.Version}
	}
	// All others name the version and the namespace as this one does.
	return &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: namespace}
}

// holding is an owner's first message.
func holding(ns, owner string, session byte) *leaseholdv1.HoldRequest {
	return &leaseholdv1.HoldRequest{
		Version: wire.Version, Namespace: ns, Seq: 1,
		Holder: &leaseholdv1.Holder{Owner: owner, Session: append(make([]byte, 15), session), Addr: "127.0.0.1:1", Weight: 1},
	}
}

// as returns a connection of somebody with a certificate, or with none.
func (c *castle) as(t *testing.T, cert *tls.Certificate, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+c.addr,
		append([]grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(c.secured.showing(cert)))}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // nothing is under way
	return conn
}

// call calls any method with messages, and returns how it ends; nil if there is an answer.
func call(ctx context.Context, conn *grpc.ClientConn, method string, messages ...proto.Message) error {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if stream.SendMsg(m) != nil {
			break // it says why to whoever listens
		}
	}
	if method != hold && method != follow {
		_ = stream.CloseSend() // or it has ended
	}
	return stream.RecvMsg(new(emptypb.Empty))
}

// A callCase is a call of somebody whose certificate is in order, if he has one.
type callCase struct {
	name    string
	show    func(t *testing.T, k *keep) *tls.Certificate // nil: none
	header  []string                                     // names and values
	method  string
	request proto.Message // nil: the usual one
	want    codes.Code
	says    string
	who     string // whom the audit names; "" if nobody knows him
}

const (
	mallory  = "spiffe://siege.test/owner/other/mallory"
	landlord = "spiffe://siege.test/operator/landlord"
	manager2 = "spiffe://siege.test/manager/m2"
)

// calls are what is refused.
func calls() (all []callCase) {
	add := func(c callCase) { all = append(all, c) }
	// Who shows nothing, or nothing that says who he is.
	for _, method := range []string{hold, follow, asking, drain, share, reflects} {
		add(callCase{name: "nobody: " + method, method: method, want: codes.Unauthenticated, says: "neither"})
	}
	named := commonName("owner/honest/owner-0")
	for name, cert := range map[string]func(*testing.T, *keep) *tls.Certificate{
		"the right common name alone":      by(ours, named, uris()),
		"the right name as mail address":   by(ours, uris(), mails("owner-0@siege.test")),
		"the right address alone":          by(ours, uris(), addresses("127.0.0.1")),
		"a host name with a wildcard":      by(ours, uris(), hosts("*.siege.test")),
		"a token's name in a certificate":  by(house, uris(&url.URL{Scheme: "token", Opaque: "reader"})),
		"a host's identity written as URI": by(house, uris(&url.URL{Scheme: "dns", Opaque: "owner-0"})),
	} {
		add(callCase{name: name, show: cert, method: hold, want: codes.Unauthenticated, says: "no identity"})
	}
	// Who shows that he is somebody else.
	for name, c := range map[string]callCase{
		"the right common name, another identity": {show: by(ours, named, is("owner/other/mallory")), says: "has no role for this in namespace", who: mallory},
		"an identity that has no rule":            {show: by(ours, is("stranger")), says: "has no role", who: "spiffe://siege.test/stranger"},
		"an identity in capitals":                 {show: by(ours, is("Owner/honest/owner-0")), says: "has no role", who: "spiffe://siege.test/Owner/honest/owner-0"},
		"an identity that goes on":                {show: by(ours, is("owner/honest/owner-0/x")), says: "has no role", who: "spiffe://siege.test/owner/honest/owner-0/x"},
		"an identity that ends too soon":          {show: by(ours, is("owner/honest")), says: "has no role", who: "spiffe://siege.test/owner/honest"},
		"an identity of another domain":           {show: by(house, uris(&url.URL{Scheme: "spiffe", Host: "siege.test.evil", Path: "/owner/honest/owner-0"})), says: "has no role", who: "spiffe://siege.test.evil"},
		"the owner's name as host name":           {show: by(ours, uris(), hosts("owner-0")), says: "has no role", who: "dns:owner-0"},
		"the owner of another namespace":          {show: of("owner/other/mallory"), says: "has no role for this in namespace", who: mallory},
		"another owner's name":                    {show: of("owner/honest/traitor"), says: `may not use the owner name "owner-0"`, who: "spiffe://siege.test/owner/honest/traitor"},
		"a lookup":                                {show: of("lookup/honest"), says: "has the role lookup", who: "spiffe://siege.test/lookup/honest"},
		"an operator":                             {show: of("operator/chief"), says: "has the role operator", who: "spiffe://siege.test/operator/chief"},
		"a manager":                               {show: of("manager/m2"), says: "has the role manager", who: manager2},
	} {
		c.name, c.method, c.want = "wants to be owner-0: "+name, hold, codes.PermissionDenied
		add(c)
	}
	for name, hostile := range map[string]string{
		"no name": "", "a name with a new line": "traitor\nlevel=INFO msg=all-is-well", "a name with dots": "traitor/../owner-0",
		"a name that looks alike": "trаitor", "a name with a zero": "traitor\x00", "a pattern": "{name}", "a name in capitals": "Traitor",
		"a name of 60,000 bytes": strings.Repeat("n", 60_000), "a script": "<script>alert(1)</script>", "right to left": "\u202etraitor",
	} {
		add(callCase{name: "hostile owner: " + name, show: of("owner/honest/traitor"), method: hold, request: holding(namespace, hostile, 8), want: codes.PermissionDenied, says: "may not use the owner name", who: "spiffe://siege.test/owner/honest/traitor"})
	}
	for name, hostile := range map[string]string{
		"none": "", "dots": "../honest", "a star": "*", "capitals": "HONEST", "a zero": "honest\x00", "a space": "honest ", "60,000 bytes": strings.Repeat("n", 60_000),
	} {
		add(callCase{name: "hostile namespace: " + name, show: of("owner/other/mallory"), method: follow, request: &leaseholdv1.FollowRequest{Version: wire.Version, Namespace: hostile, Seq: 1}, want: codes.PermissionDenied, says: "has no role for this in namespace", who: mallory})
	}
	// Who reads, and gives orders, where he may not.
	for _, method := range []string{
		follow, owners, watch, leaseholdv1.AdminService_ListRanges_FullMethodName, leaseholdv1.AdminService_LookupKey_FullMethodName,
		leaseholdv1.AdminService_ListHistory_FullMethodName, leaseholdv1.AdminService_ListChanges_FullMethodName, leaseholdv1.AdminService_ListHotKeys_FullMethodName,
		leaseholdv1.AdminService_ListLookups_FullMethodName, leaseholdv1.AdminService_ListMoves_FullMethodName,
	} {
		add(callCase{name: "a lookup of another namespace: " + method, show: of("lookup/other"), method: method, want: codes.PermissionDenied, says: "has no role for this in namespace", who: "spiffe://siege.test/lookup/other"})
	}
	for _, method := range []string{asking, follow, owners, create, update, remove, drain, move, rebalance, members, addMember, expel, share} {
		add(callCase{name: "an owner: " + method, show: of("owner/honest/traitor"), method: method, want: codes.PermissionDenied, says: "has the role owner", who: "spiffe://siege.test/owner/honest/traitor"})
	}
	for _, method := range []string{create, remove, drain, members, share} {
		add(callCase{name: "a lookup: " + method, show: of("lookup/other"), method: method, want: codes.PermissionDenied, says: "has the role lookup", who: "spiffe://siege.test/lookup/other"})
	}
	for _, method := range []string{create, update, remove, drain, move, rebalance} {
		add(callCase{name: "an operator of another namespace: " + method, show: of("operator/landlord"), method: method, want: codes.PermissionDenied, says: "has no role for this in namespace", who: landlord})
	}
	for _, method := range []string{members, addMember, expel} {
		add(callCase{name: "an operator of another namespace: " + method, show: of("operator/landlord"), method: method, want: codes.PermissionDenied, says: "requires an operator of all", who: landlord})
	}
	for _, method := range []string{create, remove, drain} {
		add(callCase{name: "a manager: " + method, show: of("manager/m2"), method: method, want: codes.PermissionDenied, says: "has the role manager", who: manager2})
	}
	add(callCase{name: "an operator: " + share, show: of("operator/chief"), method: share, want: codes.PermissionDenied, says: "has the role operator", who: "spiffe://siege.test/operator/chief"})
	return append(all, spoofs()...)
}

// spoofs are calls that say that they are passed on, as managers do.
func spoofs() []callCase {
	const caller, forwarded = "leasehold-caller", "leasehold-forwarded"
	chief := []string{forwarded, "1", caller, "spiffe://siege.test/operator/chief"}
	return []callCase{
		{name: "passed on by nobody", header: chief, method: drain, want: codes.Unauthenticated, says: "requires a manager's certificate"},
		{name: "passed on by an owner", show: of("owner/other/mallory"), header: chief, method: drain, want: codes.PermissionDenied, says: "only managers may forward", who: "spiffe://siege.test/operator/chief"},
		{name: "passed on by an operator", show: of("operator/landlord"), header: chief, method: remove, want: codes.PermissionDenied, says: "only managers may forward", who: "spiffe://siege.test/operator/chief"},
		{name: "passed on by a lookup as an owner", show: of("lookup/other"), header: []string{caller, "spiffe://siege.test/owner/honest/owner-0"}, method: hold, want: codes.PermissionDenied, says: "only managers may forward", who: "spiffe://siege.test/owner/honest/owner-0"},
		{name: "passed on by who says to be a manager besides", show: of("owner/other/mallory"), header: append([]string{caller, manager2}, chief...), method: drain, want: codes.PermissionDenied, says: "only managers may forward", who: manager2},
		{name: "passed on for nobody", show: of("manager/m2"), header: []string{forwarded, "1"}, method: remove, want: codes.PermissionDenied, says: "without its caller", who: manager2},
		{name: "passed on for nonsense", show: of("manager/m2"), header: []string{caller, "x y"}, method: drain, want: codes.PermissionDenied, says: "invalid identity", who: manager2},
		{name: "passed on for a pattern", show: of("manager/m2"), header: []string{caller, "spiffe://siege.test/owner/honest/{name}"}, method: hold, want: codes.PermissionDenied, says: "invalid identity", who: manager2},
		{name: "passed on for who may not", show: of("manager/m2"), header: []string{caller, mallory}, method: drain, want: codes.PermissionDenied, says: "has the role", who: mallory},
		{name: "passed on for a token that has expired", show: of("manager/m2"), header: []string{caller, "token:old"}, method: drain, want: codes.Unauthenticated, says: "expired", who: "token:old"},
		{name: "a standby that is none", show: of("operator/landlord"), header: []string{"leasehold-manager-bin", "evil.example:7400", forwarded, "1"}, method: asking, want: codes.PermissionDenied, says: "without its caller", who: landlord},
	}
}

// Who may not is refused whatever it calls, and that is written down.
func TestCalls(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	c := newCastle(t, settings{secured: k})
	for _, test := range calls() {
		c.attack(t, test.name, func(t *testing.T) { c.refuses(t, &test) })
	}
	for _, l := range c.lines(t) {
		if l.Msg == "all-is-well" {
			t.Error("somebody has written a line into the log")
		}
	}
}

// refuses tries a case.
func (c *castle) refuses(t *testing.T, test *callCase) {
	t.Helper()
	var cert *tls.Certificate
	if test.show != nil {
		cert = test.show(t, c.secured)
	}
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), test.header...), patience)
	defer cancel()
	request := test.request
	if request == nil {
		request = about(test.method)
	}
	err := call(ctx, c.as(t, cert), test.method, request)
	if status.Code(err) != test.want || !strings.Contains(status.Convert(err).Message(), test.says) {
		t.Errorf("what comes of it: %v; want %v: %s", err, test.want, test.says)
	}
	if test.who != "" {
		c.wantRefusal(t, test.who, test.method, test.says)
	}
}

// soon is a deadline that is not far away.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
