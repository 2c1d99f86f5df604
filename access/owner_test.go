package access_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
)

// hold opens an owner's stream.
func hold(ctx context.Context, t *testing.T, conn grpc.ClientConnInterface) *holdStream {
	t.Helper()
	stream, err := leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &holdStream{stream}
}

type holdStream struct {
	leaseholdv1.OwnerService_HoldClient
}

// exchange sends a request and returns the error of the reply.
func (h *holdStream) exchange(namespace, owner string) error {
	h.send(namespace, owner)
	_, err := h.Recv()
	return err
}

func (h *holdStream) send(namespace, owner string) {
	_ = h.Send(&leaseholdv1.HoldRequest{ // Recv returns the status of the stream
		Namespace: namespace, Holder: &leaseholdv1.Holder{Owner: owner, Session: make([]byte, 16)},
	})
}

// An owner may use only the names of its rule.
func TestOwnerNamesAreBoundToIdentities(t *testing.T) {
	d := newFixture(t, `
rules:
  - identity: spiffe://d/owner/sessions/{name}
    role: owner
    namespaces: [sessions]
  - identity: spiffe://d/web/{name}/server
    role: owner
    namespaces: [web, sessions]
    names: ["{name}:80", "{name}:443"]
  - identity: dns:{name}.cache.example.org
    role: owner
    namespaces: ["*"]
  - identity: dns:host.example.org
    role: owner
    namespaces: [sessions]
    names: [first, second]
`)
	const pattern, web, dns, exact = "spiffe://d/owner/sessions/", "spiffe://d/web/", ".cache.example.org", "dns:host.example.org"
	for _, test := range []struct {
		id, namespace, owner string
		want                 string // "": permitted
	}{
		{pattern + "a", "sessions", "a", ""},
		{pattern + "a", "sessions", "b", `may not use the owner name "b" in namespace "sessions", only a`},
		{pattern + "a", "sessions", "A", "only a"},
		{pattern + "a", "sessions", "", "only a"},
		{pattern + "a", "cache", "a", `in namespace "cache"`},
		{pattern + "a", "", "a", `in namespace ""`},
		{pattern + "a", "*", "a", `in namespace "*"`},
		{pattern + "a/b", "sessions", "a", "has no role"},
		{pattern + "a/b", "sessions", "a/b", "has no role"},
		{pattern[:len(pattern)-1], "sessions", "a", "has no role"},
		{"spiffe://d/owner/cache/a", "sessions", "a", "has no role"},
		{"spiffe://e/owner/sessions/a", "sessions", "a", "has no role"},
		{web + "h1/server", "web", "h1:80", ""},
		{web + "h1/server", "sessions", "h1:443", ""},
		{web + "h1/server", "web", "h1", "only h1:80 or h1:443"},
		{web + "h1/server", "web", "h2:80", "only h1:80 or h1:443"},
		{web + "h1/client", "web", "h1:80", "has no role"},
		{"dns:a" + dns, "anything", "a", ""},
		{"dns:A" + dns, "anything", "a", ""}, // host names have no case
		{"dns:a" + dns, "anything", "a" + dns, "only a"},
		{"dns:a.b" + dns, "anything", "a", "has no role"},
		{exact, "sessions", "first", ""},
		{exact, "sessions", "second", ""},
		{exact, "sessions", "third", "only first or second"},
		{exact, "web", "first", `in namespace "web"`},
	} {
		err := hold(t.Context(), t, d.as(test.id)).exchange(test.namespace, test.owner)
		if test.want == "" {
			wantCode(t, err, codes.OK)
		} else {
			wantCode(t, err, codes.PermissionDenied, test.want)
		}
		var ids []secure.Identity
		ids = append(ids, secure.Identity(strings.ToLower(test.id)))
		err = d.policy.Allow(access.Known(ids...), leaseholdv1.OwnerService_Hold_FullMethodName, leasehold.Namespace(test.namespace), leasehold.OwnerID(test.owner))
		if (err == nil) != (test.want == "") {
			t.Errorf("%+v: Allow returns %v", test, err)
		}
	}
}

// A permitted stream ends with its first denied message.
func TestEveryMessageIsAuthorized(t *testing.T) {
	d := newFixture(t, defaultFile)
	for _, next := range [][2]string{{"sessions", "b"}, {"cache", "a"}, {"", ""}} {
		h := hold(t.Context(), t, d.as("spiffe://d/owner/sessions/a"))
		for range 3 {
			wantCode(t, h.exchange("sessions", "a"), codes.OK)
		}
		wantCode(t, h.exchange(next[0], next[1]), codes.PermissionDenied)
	}
	if n := len(d.log.Lines("call denied", "Hold", "spiffe://d/owner/sessions/a")); n != 3 {
		t.Errorf("%d denials are in the log:\n%s", n, d.log)
	}
	if n := len(d.log.Lines("owner admitted", "owner=a", "session=00000000")); n != 1 {
		t.Errorf("%d owners were admitted:\n%s", n, d.log)
	}
}
