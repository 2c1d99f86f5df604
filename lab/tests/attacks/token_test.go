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

// tokens returns calls with invalid tokens, and with tokens that lack the permission.
func tokens(k *authority) []callCase {
	const header = "authorization"
	bearer := func(token string) []string { return []string{header, "Bearer " + token} }
	sum := sha256.Sum256([]byte(k.tokens["landlord"]))
	strange := func(name, reason string, values ...string) callCase {
		return callCase{name: name, header: values, method: getStatus, want: codes.Unauthenticated, reason: reason}
	}
	denied := func(name, caller, method, reason string) callCase {
		return callCase{name: name, header: bearer(k.tokens[caller]), method: method, want: codes.PermissionDenied, reason: reason, caller: "token:" + caller}
	}
	withGood := strange("an unknown token, with a valid certificate", "not known", bearer("leasehold_"+strings.Repeat("x", 43))...)
	withGood.cert = certificateOf("operator/chief")
	return []callCase{
		strange("an unknown token", "not known", bearer("leasehold_"+strings.Repeat("x", 43))...),
		strange("an expired token", "expired", bearer(k.tokens["old"])...),
		strange("a truncated token", "not known", bearer(k.tokens["landlord"][:30])...),
		strange("a token with a suffix", "not known", bearer(k.tokens["landlord"]+"x")...),
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
		denied("a token that has no rule", "idle", getStatus, "has no role"),
	}
}

// TestTokens: a token has the permissions of its rules, while it is in the access file.
func TestTokens(t *testing.T) {
	t.Parallel()
	k := newAuthority(t)
	c := newTestbed(t, settings{secured: k})
	for _, test := range tokens(k) {
		c.attack(t, test.name, func(t *testing.T) { c.refuses(t, &test) })
	}
	c.attack(t, "guessed tokens", func(t *testing.T) {
		// A burst of twenty, then ten a second.
		conn, begun := c.dialWith(t, nil), time.Now()
		for i := range 60 {
			ctx := metadata.AppendToOutgoingContext(shortContext(t), "authorization", fmt.Sprintf("Bearer leasehold_%043d", i))
			if err := call(ctx, conn, getStatus, defaultRequest(getStatus)); status.Code(err) != codes.Unauthenticated {
				t.Fatalf("guess %d: %v", i, err)
			}
		}
		if took := time.Since(begun); took < 3*time.Second {
			t.Errorf("60 guesses were answered in %v", took)
		}
		lines := 0
		for _, l := range c.lines(t) {
			if l.Audit && l.Msg == "call denied" && l.Caller == "anonymous" && strings.Contains(l.Why, "not known") {
				lines++
			}
		}
		if lines == 0 || lines > 30 {
			t.Errorf("the audit log has %d lines about guessed tokens, want a few", lines)
		}
	})
	c.attack(t, "a token removed while its stream is open", func(t *testing.T) {
		stream := c.openFollow(t, nil, namespace, "authorization", "Bearer "+k.tokens["guest"])
		k.write(t, k.policy, k.text())
		wantEnd(t, stream, "replaced or removed")
		c.refuses(t, &callCase{header: []string{"authorization", "Bearer " + k.tokens["guest"]}, method: follow, want: codes.Unauthenticated, reason: "not known"})
		c.wantAudited(t, "token:guest", follow, "replaced or removed")
	})
	c.attack(t, "a rule removed while its stream is open", func(t *testing.T) {
		stream := c.openFollow(t, k.certificate(t, "owner/other/mallory"), other)
		k.write(t, k.policy, strings.Replace(k.text(), "identity: spiffe://attacks.test/owner/other/mallory\n", "identity: spiffe://attacks.test/owner/other/nobody\n", 1))
		wantEnd(t, stream, "has the role owner")
		c.wantAudited(t, mallory, follow, "has the role owner")
	})
	c.attack(t, "an invalid policy", func(t *testing.T) {
		k.write(t, k.policy, "rules: []\n")
		eventually(t, "the manager logs that it rejects the policy", func(context.Context) error {
			for _, l := range c.lines(t) {
				if l.Audit && strings.HasPrefix(l.Msg, "access file rejected") {
					return nil
				}
			}
			return fmt.Errorf("no such record")
		})
		c.refuses(t, &callCase{cert: certificateOf("operator/landlord"), method: drain, want: codes.PermissionDenied, reason: "has no role for this in namespace"})
	})
}

// TestRevocation: a revoked certificate, and those below a revoked CA, are refused.
func TestRevocation(t *testing.T) {
	t.Parallel()
	k := newAuthority(t)
	c := newTestbed(t, settings{secured: k})
	guest := k.intermediateCA.sign(t, withURIs(&url.URL{Scheme: "spiffe", Host: "house.test", Path: "/lookup"}))
	dropped := k.certificate(t, "owner/other/dropped")
	following := c.openFollow(t, guest, other)
	holds, err := leaseholdv1.NewOwnerServiceClient(c.dialWith(t, dropped)).Hold(t.Context())
	if err == nil {
		err = holds.Send(holdRequest(other, "dropped", 7))
	}
	if err == nil {
		_, err = holds.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.attack(t, "certificates revoked while their streams are open", func(t *testing.T) {
		k.revoke(t, dropped.Leaf, k.intermediateCA.cert)
		wantEnd(t, following, "was revoked")
		for err == nil {
			_, err = holds.Recv()
		}
		if code := status.Code(err); code != codes.Canceled && (code != codes.Unauthenticated || !strings.Contains(err.Error(), "was revoked")) {
			t.Errorf("the owner's stream ended with %v", err)
		}
		c.wantAudited(t, "spiffe://house.test/lookup", follow, "was revoked")
		c.wantAudited(t, "spiffe://attacks.test/owner/other/dropped", hold, "was revoked")
	})
	for name, cert := range map[string]*tls.Certificate{"a revoked certificate": dropped, "a certificate of a CA that was revoked later": guest} {
		for where, addr := range map[string]string{"manager": c.addr, "pages": c.http} {
			c.attack(t, where+": "+name, func(t *testing.T) {
				protocol := map[string]string{"manager": "h2", "pages": "http/1.1"}[where]
				if got := handshake(t, addr, k.clientTLS(cert, protocol)); got != "bad certificate" {
					t.Errorf("outcome: %s", got)
				}
			})
		}
	}
}

// openFollow opens a Follow stream, and waits for its first reply.
func (c *testbed) openFollow(t *testing.T, cert *tls.Certificate, ns string, header ...string) leaseholdv1.LookupService_FollowClient {
	t.Helper()
	stream, err := leaseholdv1.NewLookupServiceClient(c.dialWith(t, cert)).Follow(metadata.AppendToOutgoingContext(t.Context(), header...))
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

// wantEnd waits until the manager ends a stream because of the policy. A stream that is
// canceled instead has no reason, but the audit log has it.
func wantEnd(t *testing.T, stream leaseholdv1.LookupService_FollowClient, reason string) {
	t.Helper()
	var err error
	for err == nil {
		_, err = stream.Recv()
	}
	code := status.Code(err)
	if code == codes.Canceled {
		return
	}
	if code != codes.Unauthenticated && code != codes.PermissionDenied || !strings.Contains(err.Error(), reason) {
		t.Errorf("the stream ended with %v, want %s", err, reason)
	}
}
