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

const domain = "attacks.test"

// other is the attackers' namespace. Their permissions are limited to it.
const other = "other"

// An authority has the CAs, certificates, tokens and policy of a testbed.
type authority struct {
	ca     *pki.Directory
	policy string            // the file
	tokens map[string]string // by name

	root *issuer // the CA of the directory, with its key
	// secondCA is another CA that the manager trusts, for any name. It has two
	// intermediate CAs: intermediateCA, and revokedCA, which is revoked.
	secondCA, intermediateCA, revokedCA *issuer
}

// parties have a certificate, and a rule in the policy for their role.
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

// extraRules are further rules of the policy.
const extraRules = `
  - identity: spiffe://attacks.test/owner/other/mallory
    role: lookup
    namespaces: [other]
  - identity: spiffe://attacks.test/operator/landlord
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

// newAuthority creates CAs, certificates, tokens and a policy.
func newAuthority(t *testing.T) *authority {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	ca, _, err := pki.Create(dir, domain, parties(), time.Now(), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.Issue(pki.Party{Role: pki.Operator, Name: "landlord"}, "", time.Now(), 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	k := &authority{ca: ca, policy: ca.Path("policy.yaml"), tokens: make(map[string]string)}
	k.root = &issuer{cert: ca.Authority(), key: readKey(t, ca.Path("ca.key"))}
	k.secondCA = newIssuer(t, "house", nil)
	k.intermediateCA, k.revokedCA = newIssuer(t, "wing", k.secondCA), newIssuer(t, "fallen", k.secondCA)
	for _, name := range []string{"reader", "landlord", "old", "guest", "idle"} {
		k.tokens[name], _ = pki.NewToken()
	}
	k.write(t, k.policy, k.text("guest"))
	k.write(t, k.manager("ca.crt"), pemOf(k.root.cert)+pemOf(k.secondCA.cert))
	k.revoke(t)
	return k
}

// manager returns the path of a file of the manager.
func (k *authority) manager(name string) string {
	return k.ca.Path(filepath.Join("manager", "m1", name))
}

// write replaces a file atomically.
func (k *authority) write(t *testing.T, name, text string) {
	t.Helper()
	err := os.WriteFile(name+".new", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// text returns the policy. Guests are names of tokens that may read the honest namespace.
func (k *authority) text(guests ...string) string {
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
	add("idle", "") // without a rule
	add("old", "    expires: 2001-01-01\n")
	return pki.Policy(domain, parties()) + extraRules + rules.String() + "tokens:\n" + tokens.String()
}

// revoke revokes certificates, besides those that are revoked already.
func (k *authority) revoke(t *testing.T, certs ...*x509.Certificate) {
	t.Helper()
	var own []*x509.Certificate
	others := []*x509.Certificate{k.revokedCA.cert}
	for _, c := range certs {
		if c.CheckSignatureFrom(k.root.cert) == nil {
			own = append(own, c)
		} else {
			others = append(others, c)
		}
	}
	file, err := k.ca.Revoke(own, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	revocationList, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	k.write(t, k.manager("crl.pem"), string(revocationList)+k.secondCA.revocationList(t, others...))
}

// certificate returns the certificate of a party.
func (k *authority) certificate(t *testing.T, party string) *tls.Certificate {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(k.ca.Path(filepath.Join(party, "tls.crt")), k.ca.Path(filepath.Join(party, "tls.key")))
	if err != nil {
		t.Fatal(err)
	}
	return &cert
}

// credentials returns the client credentials of a party.
func (k *authority) credentials(t *testing.T, party string) credentials.TransportCredentials {
	t.Helper()
	return k.keeper(t, party).Client()
}

func (k *authority) keeper(t *testing.T, party string) *secure.Keeper {
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

// args returns the manager's flags for TLS and the policy.
func (k *authority) args() []string {
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

func pemOf(cert *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}
