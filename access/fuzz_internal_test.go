package access

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/leasehold-dev/leasehold/secure"
)

// FuzzBearer: every header value except the valid token is an authentication error, and the error
// does not contain the token.
func FuzzBearer(f *testing.F) {
	const good = "0123456789abcdef0123456789abcdef"
	hash := sha256.Sum256([]byte(good))
	b, err := parse("f", []byte("rules:\n- identity: token:alice\n  role: operator\n  namespaces: [n]\ntokens:\n- name: alice\n  sha256: "+hex.EncodeToString(hash[:])+"\n"))
	if err != nil {
		f.Fatal(err)
	}
	for _, value := range []string{"Bearer " + good, "Bearer of-somebody-0123456789", "bearer  " + good + " ", "Basic " + good, good, "", "Bearer", "Bearer \x00", "Bearer " + strings.Repeat("x", 300)} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		shown, err := bearer([]string{value})
		if err == nil {
			var found *token
			if found, err = b.authenticate(shown, time.Now()); err == nil && (shown != good || found.name != "alice") {
				t.Fatalf("%q is accepted as the token of %s", value, found.name)
			}
		}
		if err != nil && len(shown) >= minTokenBytes && strings.Contains(err.Error(), shown) {
			t.Fatalf("the error repeats the token: %v", err)
		}
	})
}

// FuzzForwarded: the original caller of a forwarded call has identities, and none is empty or a
// pattern.
func FuzzForwarded(f *testing.F) {
	for _, id := range []string{"spiffe://d/owner/n/a", "dns:a.example.org", "token:alice", "token:", "spiffe://d/owner/{name}", "dns:{name}.d", "", "\xff", "token:a b"} {
		f.Add(id, id)
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		c := Caller{ids: []secure.Identity{"spiffe://d/manager/m1"}}
		err := forwarded(&c, "/s/m", metadata.MD{callerHeader: {one, two}, ForwardedHeader: {"m1"}})
		if err != nil {
			return
		}
		if len(c.via) != 1 || len(c.ids) == 0 {
			t.Fatalf("%q, %q: %v via %v", one, two, c.ids, c.via)
		}
		for _, id := range c.ids {
			if id == "" || strings.Contains(string(id), "{name}") {
				t.Fatalf("%q, %q: accepted as %q", one, two, id)
			}
		}
	})
}
