package demo

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold/internal/pki"
	"github.com/leasehold-dev/leasehold/secure"
)

// certificates is a small PKI for the processes of a demo, and as whom the demo itself
// speaks to them. A nil certificates is plain text.
type certificates struct {
	dir      *pki.Directory
	parties  []pki.Party
	operator *secure.Keeper // gives orders and reads
	lookup   *secure.Keeper // is what users find servers with
}

// demoDomain is that of all identities. It need not exist.
const demoDomain = "demo.leasehold.internal"

// newCertificates makes certificates for processes on this computer, and a policy.
func newCertificates(dir string, managers, owners []string) (*certificates, error) {
	c := &certificates{parties: []pki.Party{
		{Role: pki.Lookup, Namespace: namespace}, {Role: pki.Operator, Name: "demo"},
	}}
	here := []string{"127.0.0.1"}
	for _, name := range managers {
		c.parties = append(c.parties, pki.Party{Role: pki.Manager, Name: name, Hosts: here})
	}
	for _, name := range owners {
		c.parties = append(c.parties, pki.Party{Role: pki.Owner, Namespace: namespace, Name: name, Hosts: here})
	}
	made, issued, err := pki.Create(dir, demoDomain, c.parties, time.Now(), pki.LeafLifetime)
	if err != nil {
		return nil, err
	}
	c.dir = made
	for _, i := range issued {
		switch i.Party.Role {
		case pki.Lookup:
			c.lookup, err = openDir(i.Dir, nil)
		case pki.Operator:
			c.operator, err = openDir(i.Dir, nil)
		case pki.Manager, pki.Owner:
		}
		if err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// openDir reads the files that one process needs.
func openDir(dir string, log *slog.Logger) (*secure.Keeper, error) {
	in := func(name string) string { return filepath.Join(dir, name) }
	return secure.Open(secure.Config{Cert: in("tls.crt"), Key: in("tls.key"), Roots: in("ca.crt"), Logger: log})
}

func (c *certificates) close() {
	if c == nil {
		return
	}
	for _, k := range []*secure.Keeper{c.operator, c.lookup} {
		if k != nil {
			k.Close()
		}
	}
}

// ordering and finding are the credentials of the demo itself; nil for plain text.
func (c *certificates) ordering() credentials.TransportCredentials {
	if c == nil {
		return nil
	}
	return c.operator.Client()
}

func (c *certificates) finding() credentials.TransportCredentials {
	if c == nil {
		return nil
	}
	return c.lookup.Client()
}

// dialer is how users connect to servers.
func (c *certificates) dialer() dialer {
	if c == nil {
		return dialTCP
	}
	return c.dialTLS
}

// flags are those by which a process finds its own certificate.
func (c *certificates) flags(of pki.Party) []string {
	if c == nil {
		return nil
	}
	return append([]string{"--tls-dir", c.home(of)}, c.policyFlags(of)...)
}

func (c *certificates) policyFlags(of pki.Party) []string {
	if of.Role != pki.Manager {
		return nil
	}
	return []string{"--access", c.dir.Path("access.yaml")}
}

// home is the directory of a party.
func (c *certificates) home(of pki.Party) string {
	return c.dir.Path(filepath.Join(string(of.Role), string(of.Namespace), of.Name))
}

// renew replaces all certificates and their keys, and returns the serial number of each
// process's new one by its name.
func (c *certificates) renew() (map[string]string, error) {
	serials := make(map[string]string)
	for _, p := range c.parties {
		if _, err := c.dir.Issue(p, "", time.Now(), pki.LeafLifetime); err != nil {
			return nil, err
		}
		made, err := pki.ReadCertificates(filepath.Join(c.home(p), "tls.crt"))
		if err != nil {
			return nil, err
		}
		if p.Role == pki.Manager || p.Role == pki.Owner {
			serials[p.Name] = secure.Describe(made[0]).Serial
		}
	}
	return serials, nil
}

// dialTLS connects to a server of the presence service.
func (c *certificates) dialTLS(ctx context.Context, addr string) (net.Conn, error) {
	return c.lookup.DialTLS(ctx, "tcp", addr)
}
