package secure

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// material is what one reading of the files came to. It is never changed, so
// that each handshake sees one reading and no mixture.
type material struct {
	digest  [sha256.Size]byte
	cert    *tls.Certificate // nil for a client without
	end     time.Time        // of cert, and what is beside it
	flaws   []string         // of cert, whatever the time is
	roots   []*x509.Certificate
	pool    *x509.CertPool // of roots
	revoked revoked
	listed  bool          // there is a file with revoked, whatever is in it
	changed chan struct{} // closed once there is a newer one
}

// parse checks everything before any of it is used.
func parse(c *Config, f files, now time.Time) (*material, error) {
	m := &material{digest: f.digest(), pool: x509.NewCertPool(), changed: make(chan struct{})}
	var err error
	if m.roots, err = parseRoots(c.Roots, f.roots); err != nil {
		return nil, err
	}
	for _, root := range m.roots {
		m.pool.AddCert(root)
	}
	if c.Cert != "" {
		if m.cert, err = parsePair(c, f, now); err != nil {
			return nil, err
		}
		m.end = m.ending()
	}
	if m.listed = c.Revoked != "" && (f.revoked != nil || !c.RevokedLater); m.listed {
		if m.revoked, err = parseRevoked(c.Revoked, f.revoked, m); err != nil {
			return nil, err
		}
	}
	if m.cert != nil {
		m.flaws = m.findFlaws()
	}
	return m, nil
}

func parseRoots(name string, text []byte) ([]*x509.Certificate, error) {
	roots, err := parseCertificates(name, text)
	if err != nil {
		return nil, err
	}
	for _, root := range roots {
		if !root.IsCA {
			return nil, leasehold.Errorf("read", leasehold.ErrInvalid, name, "the certificate of %s is not that of a CA: want those of the CAs that sign our peers' certificates", nameOf(root))
		}
	}
	return roots, nil
}

func parseCertificates(name string, text []byte) ([]*x509.Certificate, error) {
	all, err := blocksOf(name, pemCertificate, text)
	if err != nil {
		return nil, err
	}
	certs := make([]*x509.Certificate, len(all))
	for i, der := range all {
		if certs[i], err = x509.ParseCertificate(der); err != nil {
			return nil, leasehold.Errorf("read", leasehold.ErrInvalid, name, "certificate %d: %w", i+1, err)
		}
	}
	return certs, nil
}

const (
	pemCertificate = "CERTIFICATE"
	pemRevoked     = "X509 CRL"
)

// parsePair reads our own certificate. One that nobody would accept is an error
// now rather than in every handshake.
func parsePair(c *Config, f files, now time.Time) (*tls.Certificate, error) {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("read", leasehold.ErrInvalid, c.Cert, format, args...)
	}
	if _, err := blocksOf(c.Cert, pemCertificate, f.cert); err != nil {
		return nil, err
	}
	if _, err := blocks(c.Key, f.key); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, bad("with the key in %s: %w", c.Key, err)
	}
	leaf := pair.Leaf
	if err := checkLeaf(leaf); err != nil {
		return nil, bad("%w", err)
	}
	if now.After(leaf.NotAfter) {
		return nil, bad("it expired on %s: renew it", date(leaf.NotAfter))
	}
	if now.Before(leaf.NotBefore) {
		return nil, bad("it is not valid before %s: wait, or look at this computer's clock", date(leaf.NotBefore))
	}
	return &pair, nil
}

// date is a time as certificates have it.
func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// nameOf is how messages call a certificate. It is quoted, whatever is in it.
func nameOf(cert *x509.Certificate) string {
	switch {
	case len(cert.URIs) > 0:
		return fmt.Sprintf("%q", clip(cert.URIs[0].String()))
	case len(cert.DNSNames) > 0:
		return fmt.Sprintf("%q", clip(cert.DNSNames[0]))
	}
	return fmt.Sprintf("%q", clip(cert.Subject.String()))
}

// own is our certificate, for handshakes.
func (m *material) own() (*tls.Certificate, error) {
	if m.cert == nil {
		return nil, errors.New("we have no certificate: Config.Cert and Config.Key name none")
	}
	return m.cert, nil
}
