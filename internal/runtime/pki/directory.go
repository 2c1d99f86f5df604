package pki

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secure"
)

// Names of files.
const (
	caCert     = "ca.crt"
	caKey      = "ca.key"
	leafCert   = "tls.crt"
	leafKey    = "tls.key"
	policyFile = "access.yaml"
	listFile   = "crl.pem"
)

// A Directory is a CA and its certificates on disk.
type Directory struct {
	dir string
	ca  *authority
}

// Create creates a directory with a new CA, a certificate for each party, and a policy for their roles. It
// is atomic, and fails if the directory is not empty.
func Create(dir, domain string, parties []Party, now time.Time, lifetime time.Duration) (*Directory, []Issued, error) {
	bad := func(err error) (*Directory, []Issued, error) {
		return nil, nil, leasehold.Errorf("make CA", leasehold.ErrInvalid, dir, "%w", err)
	}
	if err := empty(dir); err != nil {
		return bad(err)
	}
	ca, err := newAuthority(domain, now)
	if err != nil {
		return nil, nil, err
	}
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return bad(err)
	}
	scratch, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".new-*") // 0700
	if err != nil {
		return bad(err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // it does not exist after success
	d := &Directory{dir: scratch, ca: ca}
	issued, err := d.fill(parties, now, lifetime)
	if err != nil {
		return nil, nil, err
	}
	if err := os.Rename(scratch, dir); err != nil {
		return bad(err)
	}
	d.dir = dir
	for i := range issued {
		issued[i].Dir = filepath.Join(dir, issued[i].Party.dir())
	}
	return d, issued, nil
}

// empty returns an error unless the directory is empty or missing: an overwritten CA key would be lost.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == caKey }) {
		return errors.New("the directory has a CA, which is not overwritten; \"leasehold pki issue\" issues and renews its certificates")
	}
	return errors.New("the directory is not empty; choose an empty or a new one")
}

func (d *Directory) fill(parties []Party, now time.Time, lifetime time.Duration) ([]Issued, error) {
	key, err := keyText(d.ca.key)
	if err != nil {
		return nil, err
	}
	var issued []Issued
	seen := make(map[string]bool)
	for _, p := range parties {
		if seen[p.String()] {
			return nil, leasehold.Errorf("certificate", leasehold.ErrInvalid, p.String(), "duplicate party")
		}
		seen[p.String()] = true
		i, err := d.Issue(p, "", now, lifetime)
		if err != nil {
			return nil, err
		}
		issued = append(issued, i)
	}
	return issued, errors.Join(
		writeFile(filepath.Join(d.dir, policyFile), []byte(Policy(d.ca.domain, parties)), 0o600),
		writeFile(filepath.Join(d.dir, caCert), certText(d.ca.cert), 0o644),
		writeFile(filepath.Join(d.dir, caKey), key, 0o600),
	)
}

// Open opens a directory that was created by Create.
func Open(dir string) (*Directory, error) {
	bad := func(format string, args ...any) (*Directory, error) {
		return nil, leasehold.Errorf("open CA", leasehold.ErrInvalid, dir, format, args...)
	}
	certs, err := ReadCertificates(filepath.Join(dir, caCert))
	if errors.Is(err, fs.ErrNotExist) {
		return bad("no CA found; \"leasehold pki init\" creates one")
	}
	if err != nil {
		return bad("%w", err)
	}
	key, err := readKey(filepath.Join(dir, caKey))
	if err != nil {
		return bad("%w", err)
	}
	cert := certs[0]
	if public, ok := cert.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(&key.PublicKey) {
		return bad("the key in %s does not belong to the first certificate in %s", caKey, caCert)
	}
	if !cert.IsCA || len(cert.URIs) != 1 || cert.URIs[0].Scheme != "spiffe" {
		return bad("%s is not a CA certificate of \"leasehold pki init\"", caCert)
	}
	return &Directory{dir: dir, ca: &authority{cert: cert, key: key, domain: cert.URIs[0].Host}}, nil
}

// Domain returns the domain of all identities that the CA can issue.
func (d *Directory) Domain() string { return d.ca.domain }

// Authority returns the CA's certificate.
func (d *Directory) Authority() *x509.Certificate { return d.ca.cert }

// Path returns the path of a file in the directory.
func (d *Directory) Path(name string) string { return filepath.Join(d.dir, name) }

// Issue writes a certificate and its key to a directory; "" is the party's default. An existing certificate
// must have the same identity. It is renewed, with the same hosts if none are given.
func (d *Directory) Issue(p Party, dir string, now time.Time, lifetime time.Duration) (Issued, error) {
	if err := p.check(d.ca.domain); err != nil {
		return Issued{}, err
	}
	if dir == "" {
		dir = filepath.Join(d.dir, p.dir())
	}
	bad := func(err error) (Issued, error) {
		return Issued{}, leasehold.Errorf("issue certificate", leasehold.ErrInvalid, p.String(), "%w", err)
	}
	before, err := d.existing(&p, dir)
	if err != nil {
		return bad(err)
	}
	if before != nil && len(p.Hosts) == 0 {
		p.Hosts = secure.Describe(before).Hosts
	}
	if err := p.completeHosts(); err != nil {
		return Issued{}, err
	}
	cert, key, err := d.ca.issue(&p, now, lifetime)
	if err != nil {
		return Issued{}, err
	}
	if err := d.writeLeaf(dir, cert, key); err != nil {
		return bad(err)
	}
	return Issued{Party: p, Identity: p.Identity(d.ca.domain), Dir: dir, NotAfter: cert.NotAfter, Renewed: before != nil}, nil
}

// existing returns the certificate to replace, nil if there is none. A certificate of another identity is an
// error.
func (d *Directory) existing(p *Party, dir string) (*x509.Certificate, error) {
	certs, err := ReadCertificates(filepath.Join(dir, leafCert))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(filepath.Join(dir, leafKey)); err == nil {
			return nil, leasehold.Errorf("write", leasehold.ErrExists, dir, "the directory has a key without a certificate, which is not overwritten")
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if want := p.Identity(d.ca.domain); !slices.Contains(secure.Identities(certs[0]), want) {
		return nil, leasehold.Errorf("write", leasehold.ErrExists, dir, "the existing certificate is of %q, want %q; choose another directory", secure.Identities(certs[0]), want)
	}
	return certs[0], nil
}

// writeLeaf writes a certificate and its key. It writes the roots only if there are none, because the
// operator puts two CAs there during a replacement.
func (d *Directory) writeLeaf(dir string, cert *x509.Certificate, key *ecdsa.PrivateKey) error {
	text, err := keyText(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	roots := filepath.Join(dir, caCert)
	if _, err := os.Stat(roots); errors.Is(err, fs.ErrNotExist) {
		if err := writeFile(roots, certText(d.ca.cert), 0o644); err != nil {
			return err
		}
	}
	if err := writeFile(filepath.Join(dir, leafKey), text, 0o600); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, leafCert), certText(cert), 0o644)
}

func readKey(name string) (*ecdsa.PrivateKey, error) {
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	bad := leasehold.Errorf("read", leasehold.ErrInvalid, name, "not a key of \"leasehold pki init\"")
	b, _ := pem.Decode(text)
	if b == nil {
		return nil, bad
	}
	key, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	if err != nil {
		return nil, bad // the cause could reveal parts of the key
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, bad
	}
	return private, nil
}

// maxFile is the maximum size of a file; usual are some kilobytes.
const maxFile = 16 << 20

// ReadCertificates reads the certificates in a PEM file, at least one.
func ReadCertificates(name string) ([]*x509.Certificate, error) {
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("read", leasehold.ErrInvalid, name, format, args...)
	}
	var all []*x509.Certificate
	for {
		var b *pem.Block
		if b, text = pem.Decode(text); b == nil {
			break
		}
		if b.Type != "CERTIFICATE" {
			return nil, bad("the file has a PEM block of type %q, want CERTIFICATE", b.Type)
		}
		cert, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, bad("certificate %d: %w", len(all)+1, err)
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, bad("the file has no certificate in PEM")
	}
	return all, nil
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := os.Open(name) // #nosec G304 -- the operator names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d MiB", name, maxFile>>20)
	}
	return text, err
}

// writeFile writes a temporary file and renames it, so that the write is atomic.
func writeFile(name string, text []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
