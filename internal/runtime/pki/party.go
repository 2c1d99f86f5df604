// Package pki is a small certification authority, for those who have none: a
// directory with a CA and the certificates that it has issued to managers,
// owners, lookups and operators.
//
//	pki/ca.crt, ca.key                    the CA
//	pki/access.yaml                       the policy for what was issued at first
//	pki/crl.pem                           what was revoked, if anything was
//	pki/manager/m1/tls.crt, tls.key, ca.crt
//	pki/owner/sessions/cache-a/...        and so on, as in the identities
//
// What one process needs is in one directory, under the names that Kubernetes
// uses. Keys are ECDSA P-256; each renewal makes a new one. Nothing is ever half
// written, and a CA's key is never overwritten.
package pki

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secure"
)

// A Role is what a certificate's holder is in the system, as package access
// names it.
type Role string

// The roles.
const (
	Manager  Role = "manager"
	Owner    Role = "owner"
	Lookup   Role = "lookup"
	Operator Role = "operator"
)

// Roles are all roles.
func Roles() []Role { return []Role{Manager, Owner, Lookup, Operator} }

// A Party is somebody who gets a certificate.
type Party struct {
	Role      Role
	Namespace leasehold.Namespace // of owners and lookups
	Name      string              // of all but lookups
	Hosts     []string            // host names and addresses where it serves
}

func (p *Party) bad(format string, args ...any) error {
	return leasehold.Errorf("certificate", leasehold.ErrInvalid, p.String(), format, args...)
}

// check reports what is wrong with a party, but for its hosts. Names of files
// are made from what passes.
func (p *Party) check(domain string) error {
	if !slices.Contains(Roles(), p.Role) {
		return p.bad("there is no role %q: want manager, owner, lookup or operator", p.Role)
	}
	if p.namespaced() {
		if err := p.Namespace.Validate(); err != nil {
			return p.bad("%w", err)
		}
	} else if p.Namespace != "" {
		return p.bad("a %s is of all namespaces", p.Role)
	}
	if p.Role == Lookup && p.Name != "" {
		return p.bad("a lookup has a namespace and no name")
	}
	if p.Role != Lookup && p.Name == "" {
		return p.bad("its name is missing")
	}
	if id := p.Identity(domain); strings.Contains(string(id), "{") || id.Validate() != nil {
		return p.bad("a name in a certificate has letters, digits, '.', '_' and '-' only")
	}
	return nil
}

func (p *Party) completeHosts() error {
	if !p.serves() {
		if len(p.Hosts) > 0 {
			return p.bad("who has the role %s serves nobody, and needs no host", p.Role)
		}
		return nil
	}
	if len(p.Hosts) == 0 {
		p.Hosts = []string{p.Name}
	}
	if p.Role == Manager {
		// For the commands of somebody who is logged in there.
		p.Hosts = append(slices.Clone(p.Hosts), "localhost", "127.0.0.1", "::1")
	}
	for _, host := range p.Hosts {
		if !validHost(host) {
			return p.bad("%q is no host name and no address: name the hosts at which it is called", host)
		}
	}
	slices.Sort(p.Hosts)
	p.Hosts = slices.Compact(p.Hosts)
	return nil
}

// validHost reports whether clients could dial such a name and find it in a
// certificate.
func validHost(host string) bool {
	if net.ParseIP(host) != nil {
		return true
	}
	id := secure.Identity("dns:" + strings.ToLower(host))
	return len(host) <= 253 && !strings.Contains(host, "{") && id.Validate() == nil
}

func (p *Party) namespaced() bool { return p.Role == Owner || p.Role == Lookup }

// serves reports whether others call the party: managers are, and so are owners
// when state moves between them, and a lookup with hosts, which is a gateway's.
func (p *Party) serves() bool {
	return p.Role == Manager || p.Role == Owner || p.Role == Lookup && len(p.Hosts) > 0
}

func (p *Party) segments() []string {
	all := []string{string(p.Role)}
	if p.namespaced() {
		all = append(all, string(p.Namespace))
	}
	if p.Role != Lookup {
		all = append(all, p.Name)
	}
	return all
}

func (p *Party) String() string { return strings.Join(p.segments(), "/") }

// Identity is who the party is, in a domain.
func (p *Party) Identity(domain string) secure.Identity {
	return secure.Identity(fmt.Sprintf("spiffe://%s/%s", domain, p))
}

func (p *Party) dir() string { return filepath.Join(p.segments()...) }

const policyHead = `# Who may do what; everybody else may do nothing. "leasehold pki init" wrote this
# for the certificates that it made. It is yours now: it is read again when it
# changes.
#
# {name} stands for an owner's name: whoever has the certificate of an owner may
# use that name and no other. Managers and operators are named one by one.
rules:
`

// Policy is the text of an access policy that permits these parties what their
// roles say: owners of a namespace all, by their names, and the others exactly.
func Policy(domain string, parties []Party) string {
	var text strings.Builder
	text.WriteString(policyHead)
	seen := make(map[string]bool)
	for _, p := range parties {
		if rule := Rule(domain, p); !seen[rule] {
			seen[rule] = true
			text.WriteString(rule)
		}
	}
	return text.String()
}

// Rule is the rule that permits one party what its role says.
func Rule(domain string, p Party) string {
	namespaces := "*"
	if p.namespaced() {
		namespaces = string(p.Namespace)
	}
	if p.Role == Owner {
		p.Name = "{name}"
	}
	// Quoted, since a namespace may be called 1.0 or null.
	return fmt.Sprintf("  - identity: %q\n    role: %s\n    namespaces: [%q]\n", p.Identity(domain), p.Role, namespaces)
}

// Managers returns the identities that managers have by the CAs of a file, if all of them
// are such as [Create] makes: then no other certificate is a manager's, whatever host it
// is for. Of other CAs nobody here knows how they call managers: the answer is nil.
func Managers(roots string) []secure.Identity {
	certs, err := ReadCertificates(roots)
	if err != nil {
		return nil // whoever goes by the file says what is wrong with it
	}
	var all []secure.Identity
	for _, cert := range certs {
		domain, made := domainOf(cert)
		if !made {
			return nil
		}
		p := Party{Role: Manager, Name: "{name}"}
		all = append(all, p.Identity(domain))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// domainOf returns the domain of a CA that Create has made.
func domainOf(ca *x509.Certificate) (domain string, made bool) {
	if !ca.IsCA || len(ca.URIs) != 1 || ca.URIs[0].Scheme != "spiffe" || !slices.Equal(ca.Subject.Organization, []string{organization}) {
		return "", false
	}
	domain = ca.URIs[0].Host
	return domain, slices.Equal(ca.PermittedURIDomains, []string{domain})
}

// tokenPrefix lets people and scanners for secrets see what it is.
const tokenPrefix = "leasehold_"

// NewToken draws a bearer token of 256 bits, and its SHA-256 in hexadecimal,
// which is all that a policy needs to know of it.
func NewToken() (token, hash string) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	sum := sha256.Sum256([]byte(token))
	return token, hex.EncodeToString(sum[:])
}
