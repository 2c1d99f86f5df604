package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secure"
)

// Default lifetimes of certificates.
const (
	AuthorityLifetime = 3650 * day
	LeafLifetime      = 90 * day

	day = 24 * time.Hour
)

// backdated is the time from the start of validity to the creation of a certificate, for clocks that are behind.
const backdated = 5 * time.Minute

// organization is in the names of all certificates.
const organization = "Leasehold"

// An authority is a CA with its key.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	domain string
}

// newAuthority creates a CA for one domain, without intermediate CAs.
func newAuthority(domain string, now time.Time) (*authority, error) {
	if !validHost(domain) || net.ParseIP(domain) != nil || domain != strings.ToLower(domain) || strings.Contains(domain, "_") {
		return nil, leasehold.Errorf("make CA", leasehold.ErrInvalid, domain, "want a domain such as example.org, in lower case; it need not exist")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{Organization: []string{organization}, CommonName: clip(commonName(domain, point))},
		URIs:                  []*url.URL{{Scheme: "spiffe", Host: domain}}, // as SPIFFE requires for the CA of a trust domain
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(AuthorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		// Clients that trust several CAs trust this one for its domain only.
		PermittedURIDomains:         []string{domain},
		PermittedDNSDomainsCritical: true,
	}
	a := &authority{key: key, domain: domain}
	a.cert, err = a.sign(template, template, &key.PublicKey)
	return a, err
}

// commonName returns a different name for each CA, to distinguish the old and the new one during a replacement.
func commonName(domain string, key []byte) string {
	sum := sha256.Sum256(key)
	return fmt.Sprintf("CA %x of %s", sum[:4], domain)
}

func (a *authority) sign(template, parent *x509.Certificate, key *ecdsa.PublicKey) (*x509.Certificate, error) {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = number.Add(number, big.NewInt(1)) // never zero
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func (a *authority) issue(p *Party, now time.Time, lifetime time.Duration) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	if now.After(a.cert.NotAfter) {
		return nil, nil, leasehold.Errorf("issue certificate", leasehold.ErrInvalid, p.String(), "the CA expired on %s: create a new one in another directory", a.cert.NotAfter.UTC().Format(time.DateOnly))
	}
	identity, err := url.Parse(string(p.Identity(a.domain)))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{Organization: []string{organization}, CommonName: clip(p.String())},
		URIs:        []*url.URL{identity},
		NotBefore:   now.Add(-backdated),
		NotAfter:    now.Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	if p.serves() {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range p.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	cert, err := a.sign(template, a.cert, &key.PublicKey)
	return cert, key, err
}

// clip truncates a text to the maximum length of a common name.
func clip(s string) string {
	const maxCommonName = 64
	return s[:min(maxCommonName, len(s))]
}

func certText(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

func keyText(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// An Issued is a written certificate.
type Issued struct {
	Party    Party
	Identity secure.Identity
	Dir      string // with tls.crt, tls.key and ca.crt
	NotAfter time.Time
	Renewed  bool // it replaces one of the same identity
}

// listLifetime is the time until the next update of a revocation list. An outdated list rejects no
// certificates; a log message requests a new one.
const listLifetime = 365 * day

// Revoke adds certificates to the CA's revocation list, and returns its file.
func (d *Directory) Revoke(certs []*x509.Certificate, now time.Time) (string, error) {
	file := d.Path(listFile)
	bad := func(format string, args ...any) (string, error) {
		return "", leasehold.Errorf("revoke", leasehold.ErrInvalid, file, format, args...)
	}
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: now.Add(-backdated), NextUpdate: now.Add(listLifetime)}
	before, err := d.readList(file)
	if err != nil {
		return bad("%w", err)
	}
	if before != nil {
		list.Number.Add(list.Number, before.Number)
		list.RevokedCertificateEntries = before.RevokedCertificateEntries
	}
	for _, cert := range certs {
		if err := cert.CheckSignatureFrom(d.ca.cert); err != nil || bytes.Equal(cert.Raw, d.ca.cert.Raw) {
			return bad("the certificate with serial number %x was not issued by this CA", cert.SerialNumber)
		}
		if !listed(list, cert.SerialNumber) {
			list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: cert.SerialNumber, RevocationTime: now})
		}
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, d.ca.cert, d.ca.key)
	if err != nil {
		return bad("%w", err)
	}
	return file, writeFile(file, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}), 0o644)
}

func listed(list *x509.RevocationList, number *big.Int) bool {
	return slices.ContainsFunc(list.RevokedCertificateEntries, func(e x509.RevocationListEntry) bool { return e.SerialNumber.Cmp(number) == 0 })
}

// readList reads the revocation list, nil if there is none.
func (d *Directory) readList(file string) (*x509.RevocationList, error) {
	text, err := readFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, _ := pem.Decode(text)
	if b == nil {
		return nil, errors.New("not a revocation list in PEM")
	}
	list, err := x509.ParseRevocationList(b.Bytes)
	if err != nil {
		return nil, err
	}
	if err := list.CheckSignatureFrom(d.ca.cert); err != nil {
		return nil, err
	}
	return list, nil
}
