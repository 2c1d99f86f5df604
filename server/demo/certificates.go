package demo

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// certificates is a PKI for the processes of a demo, and has the certificates of the demo
// itself. A nil certificates is for plain text.
type certificates struct {
	dir      *pki.Directory
	parties  []pki.Party
	operator *secure.Keeper // for admin requests
	lookup   *secure.Keeper // for callers
}

// demoDomain is that of all identities. It need not exist.
const demoDomain = "demo.leasehold.internal"

// newCertificates issues certificates for processes on this computer, and a policy.
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
	var err error
	if c.dir, _, err = pki.Create(dir, demoDomain, c.parties, time.Now(), pki.LeafLifetime); err != nil {
		return nil, err
	}
	if c.lookup, err = c.open(c.parties[0]); err != nil {
		return nil, err
	}
	if c.operator, err = c.open(c.parties[1]); err != nil {
		c.lookup.Close()
		return nil, err
	}
	return c, nil
}

func (c *certificates) open(of pki.Party) (*secure.Keeper, error) {
	in := func(name string) string { return filepath.Join(c.home(of), name) }
	return secure.Open(secure.Config{Cert: in("tls.crt"), Key: in("tls.key"), Roots: in("ca.crt")})
}

func (c *certificates) close() {
	if c != nil {
		c.operator.Close()
		c.lookup.Close()
	}
}

// credentials are those of the demo itself; nil for plain text.
func (c *certificates) credentials() (operator, lookup credentials.TransportCredentials) {
	if c == nil {
		return nil, nil
	}
	return c.operator.Client(), c.lookup.Client()
}

// dialServer connects a caller to a server of the presence service, with TLS.
func (c *certificates) dialServer(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return c.lookup.DialTLS(ctx, network, addr)
}

func (c *certificates) flags(of pki.Party) []string {
	if c == nil {
		return nil
	}
	flags := []string{"--tls-dir", c.home(of)}
	if of.Role == pki.Manager {
		flags = append(flags, "--access", c.dir.Path("access.yaml"))
	}
	return flags
}

func (c *certificates) home(of pki.Party) string {
	return c.dir.Path(filepath.Join(string(of.Role), string(of.Namespace), of.Name))
}

// renew replaces all certificates and their keys on disk, and returns the new serial numbers
// of managers and owners by their names.
func (c *certificates) renew() (map[string]string, error) {
	serials := make(map[string]string)
	for _, p := range c.parties {
		if _, err := c.dir.Issue(p, "", time.Now(), pki.LeafLifetime); err != nil {
			return nil, err
		}
		issued, err := pki.ReadCertificates(filepath.Join(c.home(p), "tls.crt"))
		if err != nil {
			return nil, err
		}
		if p.Role == pki.Manager || p.Role == pki.Owner {
			serials[p.Name] = secure.Describe(issued[0]).Serial
		}
	}
	return serials, nil
}

// renewalPoll is the interval of checks whether processes use renewed files: each connects to every
// process.
const renewalPoll = 500 * time.Millisecond

// renewCertificates replaces the certificates of all processes while they run, waits until
// all present the new ones, and counts the leases that were lost meanwhile.
func (n *nemesis) renewCertificates(ctx context.Context, _ *rand.Rand) error {
	c, before := n.cluster, n.baseline()
	want, err := c.certificates.renew()
	if err != nil {
		return err
	}
	c.journal.add("all certificates were replaced on disk, with new keys")
	err = await(ctx, "waiting for new certificates", func(ctx context.Context) error {
		err := c.present(ctx, want)
		if err != nil {
			proc.Pause(ctx, renewalPoll)
		}
		return err
	})
	if err != nil {
		return err
	}
	lost := n.lostSince(ctx, before)
	n.count(func(f *FaultCounts) { f.Renewed, f.LostToRenewal = f.Renewed+len(want), f.LostToRenewal+lost })
	c.journal.add("all %d processes present their new certificates; lost leases: %d", len(want), lost)
	return nil
}

// present fails unless every process presents the certificate with its serial number.
// Processes that are dead or stopped come back, and are waited for.
func (c *cluster) present(ctx context.Context, serials map[string]string) error {
	addrs := make(map[string]string)
	for _, m := range c.managers.All {
		addrs[m.Name] = m.Member.Addr
	}
	members, err := c.members(ctx)
	if err != nil {
		return err
	}
	for name, o := range members {
		addrs[name] = o.Addr
	}
	for name, serial := range serials {
		got, err := c.certificates.presented(ctx, addrs[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if got != serial {
			return fmt.Errorf("%s presents the certificate %s, want %s", name, got, serial)
		}
	}
	return nil
}

// presented connects to a process, and returns the serial number of the certificate that it
// presents.
func (c *certificates) presented(ctx context.Context, addr string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	conn, err := c.operator.DialTLS(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // nothing was sent
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return "", fmt.Errorf("a connection of type %T is not one of TLS", conn)
	}
	return secure.Describe(secured.ConnectionState().PeerCertificates[0]).Serial, nil
}
