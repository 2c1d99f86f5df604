//go:build linux

package attacks

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// tokens are calls with a token that is of no use.
func tokens(k *keep) []callCase {
	const header = "authorization"
	bearer := func(token string) []string { return []string{header, "Bearer " + token} }
	sum := sha256.Sum256([]byte(k.tokens["landlord"]))
	strange := func(name, says string, values ...string) callCase {
		return callCase{name: name, header: values, method: asking, want: codes.Unauthenticated, says: says}
	}
	denied := func(name, who, method, says string) callCase {
		return callCase{name: name, header: bearer(k.tokens[who]), method: method, want: codes.PermissionDenied, says: says, who: "token:" + who}
	}
	withGood := strange("a token that nobody knows, beside a good certificate", "not known", bearer("leasehold_"+strings.Repeat("x", 43))...)
	withGood.show = of("operator/chief")
	return []callCase{
		strange("a token that nobody knows", "not known", bearer("leasehold_"+strings.Repeat("x", 43))...),
		strange("a token that has expired", "expired", bearer(k.tokens["old"])...),
		strange("a token cut short", "not known", bearer(k.tokens["landlord"][:30])...),
		strange("a token that goes on", "not known", bearer(k.tokens["landlord"]+"x")...),
		strange("a token's hash", "not known", bearer(hex.EncodeToString(sum[:]))...),
		strange("no token", "0 bytes", bearer("")...),
		strange("a token of 10,000 bytes", "10000 bytes", bearer(strings.Repeat("x", 10_000))...),
		strange("two tokens", "2 authorization headers", append(bearer(k.tokens["landlord"]), bearer(k.tokens["reader"])...)...),
		strange("a password", "must have the form", header, "Basic YWRtaW46YWRtaW4="),
		strange("a token's name", "not known", bearer("token:landlord-of-all")...),
		withGood,
		denied("a token in place of a certificate", "reader", hold, "has the role lookup"),
		denied("an operator's token in place of a certificate", "landlord", hold, "has the role operator"),
		denied("a token of the wrong role", "reader", drain, "has the role lookup"),
		denied("a token of the wrong role, among managers", "reader", members, "has the role lookup"),
		denied("a token of another namespace", "landlord", drain, "has no role for this in namespace"),
		denied("a token of another namespace, to look", "landlord", follow, "has no role for this in namespace"),
		denied("a token that has no rule", "idle", asking, "has no role"),
	}
}

// A token is good for what it is for, and for as long as it is in the file.
func TestTokens(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	c := newCastle(t, settings{secured: k})
	for _, test := range tokens(k) {
		c.attack(t, test.name, func(t *testing.T) { c.refuses(t, &test) })
	}
	c.attack(t, "tokens are guessed", func(t *testing.T) {
		// Twenty at once, and then ten in a second, until the connection's time is up.
		conn, begun := c.as(t, nil), time.Now()
		for i := range 60 {
			ctx := metadata.AppendToOutgoingContext(soon(t), "authorization", fmt.Sprintf("Bearer leasehold_%043d", i))
			if err := call(ctx, conn, asking, about(asking)); status.Code(err) != codes.Unauthenticated {
				t.Fatalf("guess %d: %v", i, err)
			}
		}
		if took := time.Since(begun); took < 3*time.Second {
			t.Errorf("they are told within %v", took)
		}
		told := 0
		for _, l := range c.lines(t) {
			if l.Audit && l.Msg == "call denied" && l.Caller == "anonymous" && strings.Contains(l.Why, "not known") {
				told++
			}
		}
		if told == 0 || told > 30 {
			t.Errorf("the audit has %d lines about it, want a few", told)
		}
	})
	c.attack(t, "a token that is taken away while its stream stands", func(t *testing.T) {
		stream := c.follows(t, nil, namespace, "authorization", "Bearer "+k.tokens["guest"])
		k.write(t, k.policy, k.text())
		wantEnd(t, stream, "replaced or removed")
		c.refuses(t, &callCase{header: []string{"authorization", "Bearer " + k.tokens["guest"]}, method: follow, want: codes.Unauthenticated, says: "not known"})
		c.wantRefusal(t, "token:guest", follow, "replaced or removed")
	})
	c.attack(t, "a rule that is taken away while its stream stands", func(t *testing.T) {
		stream := c.follows(t, k.certificate(t, "owner/other/mallory"), other)
		k.write(t, k.policy, strings.Replace(k.text(), "identity: spiffe://siege.test/owner/other/mallory\n", "identity: spiffe://siege.test/owner/other/nobody\n", 1))
		wantEnd(t, stream, "has the role owner")
		c.wantRefusal(t, mallory, follow, "has the role owner")
	})
	c.attack(t, "a policy that makes no sense", func(t *testing.T) {
		k.write(t, k.policy, "rules: []\n")
		eventually(t, "the manager says that it does not take it", func(context.Context) error {
			for _, l := range c.lines(t) {
				if l.Audit && strings.HasPrefix(l.Msg, "access file rejected") {
					return nil
				}
			}
			return fmt.Errorf("it does not")
		})
		c.refuses(t, &callCase{show: of("operator/landlord"), method: drain, want: codes.PermissionDenied, says: "has no role for this in namespace"})
	})
}

// A certificate is good until it is on a list, and so is every one that it leads to.
func TestRevocation(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	c := newCastle(t, settings{secured: k})
	guest := k.wing.sign(t, uris(&url.URL{Scheme: "spiffe", Host: "house.test", Path: "/lookup"}))
	dropped := k.certificate(t, "owner/other/dropped")
	following := c.follows(t, guest, other)
	holds, err := leaseholdv1.NewOwnerServiceClient(c.as(t, dropped)).Hold(t.Context())
	if err == nil {
		err = holds.Send(holding(other, "dropped", 7))
	}
	if err == nil {
		_, err = holds.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.attack(t, "certificates are revoked while their streams stand", func(t *testing.T) {
		k.revoke(t, dropped.Leaf, k.wing.cert)
		wantEnd(t, following, "was revoked")
		for err == nil {
			_, err = holds.Recv()
		}
		if code := status.Code(err); code != codes.Canceled && (code != codes.Unauthenticated || !strings.Contains(err.Error(), "was revoked")) {
			t.Errorf("the owner's stream has ended with %v", err)
		}
		c.wantRefusal(t, "spiffe://house.test/lookup", follow, "was revoked")
		c.wantRefusal(t, "spiffe://siege.test/owner/other/dropped", hold, "was revoked")
	})
	for name, cert := range map[string]*tls.Certificate{"a revoked certificate": dropped, "a certificate whose CA is revoked by now": guest} {
		for where, addr := range map[string]string{"manager": c.addr, "pages": c.http} {
			c.attack(t, where+": "+name, func(t *testing.T) {
				protocol := map[string]string{"manager": "h2", "pages": "http/1.1"}[where]
				if got := shake(t, addr, k.showing(cert, protocol)); got != "bad certificate" {
					t.Errorf("what comes of it: %s", got)
				}
			})
		}
	}
}

// follows opens a stream that is answered.
func (c *castle) follows(t *testing.T, cert *tls.Certificate, ns string, header ...string) leaseholdv1.LookupService_FollowClient {
	t.Helper()
	stream, err := leaseholdv1.NewLookupServiceClient(c.as(t, cert)).Follow(metadata.AppendToOutgoingContext(t.Context(), header...))
	if err == nil {
		err = stream.Send(&leaseholdv1.FollowRequest{Version: wire.Version, Namespace: ns, Seq: 1})
	}
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// wantEnd waits for a stream to be ended by the policy. One that does not end in time is
// cut off, and hears why when it comes again: the audit has it in any case.
func wantEnd(t *testing.T, stream leaseholdv1.LookupService_FollowClient, says string) {
	t.Helper()
	var err error
	for err == nil {
		_, err = stream.Recv()
	}
	code := status.Code(err)
	if code == codes.Canceled {
		return
	}
	if code != codes.Unauthenticated && code != codes.PermissionDenied || !strings.Contains(err.Error(), says) {
		t.Errorf("it has ended with %v, want %s", err, says)
	}
}
