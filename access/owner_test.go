package access_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
)

func sprint(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// hold opens a stream and says what an owner says.
func hold(ctx context.Context, t *testing.T, conn grpc.ClientConnInterface) *holding {
	t.Helper()
	stream, err := leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &holding{stream}
}

type holding struct {
	leaseholdv1.OwnerService_HoldClient
}

// say sends a message and returns how the stream fares.
func (h *holding) say(namespace, owner string) error {
	h.tell(namespace, owner)
	_, err := h.Recv()
	return err
}

func (h *holding) tell(namespace, owner string) {
	_ = h.Send(&leaseholdv1.HoldRequest{ // what Recv returns says more
		Namespace: namespace, Holder: &leaseholdv1.Holder{Owner: owner, Session: make([]byte, 16)},
	})
}

// An owner's name is bound to its identity, in every message.
func TestOwnersNames(t *testing.T) {
	d := newDesk(t, `
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
		says                 string // "": it may
	}{
		{pattern + "a", "sessions", "a", ""},
		{pattern + "a", "sessions", "b", `may not call itself "b" in namespace "sessions", but a`},
		{pattern + "a", "sessions", "A", "but a"},
		{pattern + "a", "sessions", "", "but a"},
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
		{web + "h1/server", "web", "h1", "but h1:80 or h1:443"},
		{web + "h1/server", "web", "h2:80", "but h1:80 or h1:443"},
		{web + "h1/client", "web", "h1:80", "has no role"},
		{"dns:a" + dns, "anything", "a", ""},
		{"dns:A" + dns, "anything", "a", ""}, // host names have no case
		{"dns:a" + dns, "anything", "a" + dns, "but a"},
		{"dns:a.b" + dns, "anything", "a", "has no role"},
		{exact, "sessions", "first", ""},
		{exact, "sessions", "second", ""},
		{exact, "sessions", "third", "but first or second"},
		{exact, "web", "first", `in namespace "web"`},
	} {
		err := hold(t.Context(), t, d.as(test.id)).say(test.namespace, test.owner)
		if test.says == "" {
			wantCode(t, err, codes.OK)
		} else {
			wantCode(t, err, codes.PermissionDenied, test.says)
		}
		var ids []secure.Identity
		ids = append(ids, secure.Identity(strings.ToLower(test.id)))
		err = d.policy.Allow(access.Known(ids...), leaseholdv1.OwnerService_Hold_FullMethodName, leasehold.Namespace(test.namespace), leasehold.OwnerID(test.owner))
		if (err == nil) != (test.says == "") {
			t.Errorf("%+v: Allow says %v", test, err)
		}
	}
}

// A stream that was permitted is not permitted everything.
func TestEveryMessageIsDecidedAbout(t *testing.T) {
	d := newDesk(t, usualFile)
	for _, next := range [][2]string{{"sessions", "b"}, {"cache", "a"}, {"", ""}} {
		h := hold(t.Context(), t, d.as("spiffe://d/owner/sessions/a"))
		for range 3 {
			wantCode(t, h.say("sessions", "a"), codes.OK)
		}
		wantCode(t, h.say(next[0], next[1]), codes.PermissionDenied)
	}
	if n := len(d.log.Lines("refused", "Hold", "spiffe://d/owner/sessions/a")); n != 3 {
		t.Errorf("%d refusals are in the log:\n%s", n, d.log)
	}
	if n := len(d.log.Lines("an owner was let in", "owner=a", "session=00000000")); n != 1 {
		t.Errorf("%d owners were let in:\n%s", n, d.log)
	}
}
