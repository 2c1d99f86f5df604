// Package pki is a small certificate authority: a directory with a CA and its certificates for managers, owners,
// lookups and operators.
//
//	pki/ca.crt, ca.key                    the CA
//	pki/access.yaml                       the policy for the initial certificates
//	pki/crl.pem                           the revocation list, if any
//	pki/manager/m1/tls.crt, tls.key, ca.crt
//	pki/owner/sessions/cache-a/...        and so on, as in the identities
//
// The files of one process are in one directory, with the names that Kubernetes uses. Keys are ECDSA P-256;
// each renewal generates a new one. All writes are atomic, and a CA's key is never overwritten.
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

// A Role is the role of a certificate's holder, as in package access.
type Role string

const (
	Manager  Role = "manager"
	Owner    Role = "owner"
	Lookup   Role = "lookup"
	Operator Role = "operator"
)

// Roles returns all roles.
func Roles() []Role { return []Role{Manager, Owner, Lookup, Operator} }

// A Party is the subject of a certificate.
type Party struct {
	Role      Role
	Namespace leasehold.Namespace // of owners and lookups
	Name      string              // of all roles but lookup
	Hosts     []string            // host names and addresses of the server
}

func (p *Party) bad(format string, args ...any) error {
	return leasehold.Errorf("certificate", leasehold.ErrInvalid, p.String(), format, args...)
}

// check validates a party except for its hosts. Its fields become file names.
func (p *Party) check(domain string) error {
	if !slices.Contains(Roles(), p.Role) {
		return p.bad("unknown role %q: want manager, owner, lookup or operator", p.Role)
	}
	if p.namespaced() {
		if err := p.Namespace.Validate(); err != nil {
			return p.bad("%w", err)
		}
	} else if p.Namespace != "" {
		return p.bad("a %s has no namespace", p.Role)
	}
	if p.Role == Lookup && p.Name != "" {
		return p.bad("a lookup has a namespace and no name")
	}
	if p.Role != Lookup && p.Name == "" {
		return p.bad("the name is missing")
	}
	if id := p.Identity(domain); strings.Contains(string(id), "{") || id.Validate() != nil {
		return p.bad("invalid name: want letters, digits, '.', '_' and '-' only")
	}
	return nil
}

func (p *Party) completeHosts() error {
	if !p.serves() {
		if len(p.Hosts) > 0 {
			return p.bad("the role %s has no server, and no hosts", p.Role)
		}
		return nil
	}
	if len(p.Hosts) == 0 {
		p.Hosts = []string{p.Name}
	}
	if p.Role == Manager {
		// For commands on the same host.
		p.Hosts = append(slices.Clone(p.Hosts), "localhost", "127.0.0.1", "::1")
	}
	for _, host := range p.Hosts {
		if !validHost(host) {
			return p.bad("%q is neither a host name nor an address: name the hosts of the server", host)
		}
	}
	slices.Sort(p.Hosts)
	p.Hosts = slices.Compact(p.Hosts)
	return nil
}

// validHost reports whether a host is valid in an address and in a certificate.
func validHost(host string) bool {
	if net.ParseIP(host) != nil {
		return true
	}
	id := secure.Identity("dns:" + strings.ToLower(host))
	return len(host) <= 253 && !strings.Contains(host, "{") && id.Validate() == nil
}

func (p *Party) namespaced() bool { return p.Role == Owner || p.Role == Lookup }

// serves reports whether the party is a server: a manager, an owner, which receives moving state, or a
// lookup with hosts, which is a gateway.
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

// Identity returns the identity of the party in a domain.
func (p *Party) Identity(domain string) secure.Identity {
	return secure.Identity(fmt.Sprintf("spiffe://%s/%s", domain, p))
}

func (p *Party) dir() string { return filepath.Join(p.segments()...) }

const policyHead = `# Access rules; all other access is denied. "leasehold pki init" wrote this file for
# its certificates. You may edit it: it is reloaded when it changes.
#
# {name} stands for an owner's name: the certificate of an owner permits that name
# and no other. Managers and operators have one rule each.
rules:
`

// Policy returns the text of an access policy for these parties and their roles. One rule covers all owners
// of a namespace, by name; the other parties have a rule each.
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

// Rule returns the rule for one party and its role.
func Rule(domain string, p Party) string {
	namespaces := "*"
	if p.namespaced() {
		namespaces = string(p.Namespace)
	}
	if p.Role == Owner {
		p.Name = "{name}"
	}
	// Quoted, because a namespace may have the name 1.0 or null.
	return fmt.Sprintf("  - identity: %q\n    role: %s\n    namespaces: [%q]\n", p.Identity(domain), p.Role, namespaces)
}

// Managers returns the identities of managers under the CAs of a file, if all of these were made by
// [Create]: then no other certificate is a manager's. With other CAs it returns nil, because their manager
// identities are unknown.
func Managers(roots string) []secure.Identity {
	certs, err := ReadCertificates(roots)
	if err != nil {
		return nil // the user of the file reports the error
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

// domainOf returns the domain of a CA that was made by Create.
func domainOf(ca *x509.Certificate) (domain string, made bool) {
	if !ca.IsCA || len(ca.URIs) != 1 || ca.URIs[0].Scheme != "spiffe" || !slices.Equal(ca.Subject.Organization, []string{organization}) {
		return "", false
	}
	domain = ca.URIs[0].Host
	return domain, slices.Equal(ca.PermittedURIDomains, []string{domain})
}

// tokenPrefix identifies tokens for operators and secret scanners.
const tokenPrefix = "leasehold_"

// NewToken returns a random bearer token of 256 bits, and its SHA-256 in hexadecimal for the policy.
func NewToken() (token, hash string) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	sum := sha256.Sum256([]byte(token))
	return token, hex.EncodeToString(sum[:])
}
