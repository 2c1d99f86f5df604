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

// How long certificates are valid, unless somebody says otherwise.
const (
	AuthorityLifetime = 3650 * day
	LeafLifetime      = 90 * day

	day = 24 * time.Hour
)

// backdated is how long before its making a certificate is valid, for clocks
// that are behind.
const backdated = 5 * time.Minute

// organization is in the names of all that we make.
const organization = "Leasehold"

// An authority is a CA with its key.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	domain string
}

// newAuthority makes a CA that can sign for one domain, and no CA below it.
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
		URIs:                  []*url.URL{{Scheme: "spiffe", Host: domain}}, // as SPIFFE wants it of a trust domain's CA
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(AuthorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		// Whoever trusts it beside other CAs trusts it for this domain only.
		PermittedURIDomains:         []string{domain},
		PermittedDNSDomainsCritical: true,
	}
	a := &authority{key: key, domain: domain}
	a.cert, err = a.sign(template, template, &key.PublicKey)
	return a, err
}

// commonName is different for each CA, so that the old one and the new one can be told
// apart while one takes the other's place.
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
		return nil, nil, leasehold.Errorf("issue certificate", leasehold.ErrInvalid, p.String(), "the CA itself expired on %s: make a new one in another directory", a.cert.NotAfter.UTC().Format(time.DateOnly))
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

// clip makes a text fit for a common name. It is there for people to read.
func clip(s string) string {
	const most = 64
	return s[:min(most, len(s))]
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

// An Issued is a certificate that was written, and where.
type Issued struct {
	Party    Party
	Identity secure.Identity
	Dir      string // with tls.crt, tls.key and ca.crt
	NotAfter time.Time
	Renewed  bool // there was one of the same identity before
}

// listLifetime is how long a list says that it is the newest. Nobody is refused
// when it is over; logs ask for a newer one.
const listLifetime = 365 * day

// Revoke adds certificates to the CA's revocation list, and returns the list's
// file. Those that are on it already stay on it.
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

// readList reads the list as we have written it, nil if there is none.
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
		return nil, errors.New("it is no revocation list in PEM")
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
