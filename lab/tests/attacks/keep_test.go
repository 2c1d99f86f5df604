//go:build linux

package attacks

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/secure"
)

const domain = "siege.test"

// other is the namespace of those who attack. What they may do, they may do there.
const other = "other"

// A keep has the certificates, the tokens and the policy of a castle.
type keep struct {
	ca     *pki.Directory
	policy string            // the file
	tokens map[string]string // by name

	root *issuer // that CA, with its key
	// house is another CA that the manager trusts, for whatever name; below it there is
	// wing, and fallen, which was revoked.
	house, wing, fallen *issuer
}

// parties are those who get a certificate, and whom the policy permits what they are.
func parties() []pki.Party {
	all := []pki.Party{
		{Role: pki.Manager, Name: "m1", Hosts: []string{"127.0.0.1"}},
		{Role: pki.Manager, Name: "m2"},
		{Role: pki.Owner, Namespace: namespace, Name: "traitor"},
		{Role: pki.Owner, Namespace: other, Name: "mallory"},
		{Role: pki.Owner, Namespace: other, Name: "victim"},
		{Role: pki.Owner, Namespace: other, Name: "dropped"},
		{Role: pki.Owner, Namespace: other, Name: "agent", Hosts: []string{"127.0.0.1"}},
		{Role: pki.Owner, Namespace: other, Name: "mover", Hosts: []string{"127.0.0.1"}},
		{Role: pki.Lookup, Namespace: namespace},
		{Role: pki.Lookup, Namespace: other},
		{Role: pki.Operator, Name: "chief"},
	}
	for i := range 3 {
		all = append(all, pki.Party{Role: pki.Owner, Namespace: namespace, Name: fmt.Sprintf("owner-%d", i), Hosts: []string{"127.0.0.1"}})
	}
	return all
}

// more is what the policy permits besides.
const more = `
  - identity: spiffe://siege.test/owner/other/mallory
    role: lookup
    namespaces: [other]
  - identity: spiffe://siege.test/operator/landlord
    role: operator
    namespaces: [other]
  - identity: spiffe://house.test/lookup
    role: lookup
    namespaces: [other]
  - identity: token:reader
    role: lookup
    namespaces: [honest]
  - identity: token:landlord
    role: operator
    namespaces: [other]
  - identity: token:old
    role: operator
    namespaces: ["*"]
`

// newKeep makes certificates and a policy.
func newKeep(t *testing.T) *keep {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	ca, _, err := pki.Create(dir, domain, parties(), time.Now(), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.Issue(pki.Party{Role: pki.Operator, Name: "landlord"}, "", time.Now(), 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	k := &keep{ca: ca, policy: ca.Path("policy.yaml"), tokens: make(map[string]string)}
	k.root = &issuer{cert: ca.Authority(), key: readKey(t, ca.Path("ca.key"))}
	k.house = newIssuer(t, "house", nil)
	k.wing, k.fallen = newIssuer(t, "wing", k.house), newIssuer(t, "fallen", k.house)
	for _, name := range []string{"reader", "landlord", "old", "guest", "idle"} {
		k.tokens[name], _ = pki.NewToken()
	}
	k.write(t, k.policy, k.text("guest"))
	k.write(t, k.manager("ca.crt"), textOf(k.root.cert)+textOf(k.house.cert))
	k.revoke(t)
	return k
}

// manager is a file of the manager's.
func (k *keep) manager(name string) string { return k.ca.Path(filepath.Join("manager", "m1", name)) }

// write replaces a file as one should: it is there before, or there after.
func (k *keep) write(t *testing.T, name, text string) {
	t.Helper()
	err := os.WriteFile(name+".new", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// text is the policy. The guests are tokens that may look at the honest, for now.
func (k *keep) text(guests ...string) string {
	var rules, tokens strings.Builder
	add := func(name, expires string) {
		sum := sha256.Sum256([]byte(k.tokens[name]))
		fmt.Fprintf(&tokens, "  - name: %s\n    sha256: %s\n%s", name, hex.EncodeToString(sum[:]), expires)
	}
	for _, name := range guests {
		fmt.Fprintf(&rules, "  - identity: token:%s\n    role: lookup\n    namespaces: [honest]\n", name)
		add(name, "")
	}
	add("reader", "")
	add("landlord", "")
	add("idle", "") // no rule is about it
	add("old", "    expires: 2001-01-01\n")
	return pki.Policy(domain, parties()) + more + rules.String() + "tokens:\n" + tokens.String()
}

// revoke revokes certificates, besides those that are.
func (k *keep) revoke(t *testing.T, certs ...*x509.Certificate) {
	t.Helper()
	var ours []*x509.Certificate
	theirs := []*x509.Certificate{k.fallen.cert}
	for _, c := range certs {
		if c.CheckSignatureFrom(k.root.cert) == nil {
			ours = append(ours, c)
		} else {
			theirs = append(theirs, c)
		}
	}
	file, err := k.ca.Revoke(ours, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	k.write(t, k.manager("crl.pem"), string(list)+k.house.list(t, theirs...))
}

// certificate is that of a party.
func (k *keep) certificate(t *testing.T, party string) *tls.Certificate {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(k.ca.Path(filepath.Join(party, "tls.crt")), k.ca.Path(filepath.Join(party, "tls.key")))
	if err != nil {
		t.Fatal(err)
	}
	return &cert
}

// credentials are those of an honest party that calls.
func (k *keep) credentials(t *testing.T, party string) credentials.TransportCredentials {
	t.Helper()
	return k.keeper(t, party).Client()
}

func (k *keep) keeper(t *testing.T, party string) *secure.Keeper {
	t.Helper()
	keeper, err := secure.Open(secure.Config{
		Cert: k.ca.Path(filepath.Join(party, "tls.crt")), Key: k.ca.Path(filepath.Join(party, "tls.key")), Roots: k.ca.Path("ca.crt"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keeper.Close)
	return keeper
}

// args are how a manager is told of all that.
func (k *keep) args() []string {
	return []string{"--tls-dir", k.manager(""), "--access", k.policy, "--log-format", "json"}
}

func readKey(t *testing.T, name string) *ecdsa.PrivateKey {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(*ecdsa.PrivateKey)
}

func textOf(cert *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}
