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

// A Directory is a CA and what it has issued, on disk.
type Directory struct {
	dir string
	ca  *authority
}

// Create makes a directory with a new CA, a certificate for each party, and a
// policy that permits them what their roles say. All of it appears at once, or
// nothing does. It refuses a directory that has something in it.
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
	defer func() { _ = os.RemoveAll(scratch) }() // there is none after success
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

// empty refuses what is there already: a CA's key cannot be got back.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == caKey }) {
		return errors.New("there is a CA already, and nothing is overwritten; \"leasehold pki issue\" makes and renews certificates of it")
	}
	return errors.New("the directory is not empty; choose one that is, or that does not exist")
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
			return nil, leasehold.Errorf("certificate", leasehold.ErrInvalid, p.String(), "it is named twice")
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

// Open opens a directory that Create has made.
func Open(dir string) (*Directory, error) {
	bad := func(format string, args ...any) (*Directory, error) {
		return nil, leasehold.Errorf("open CA", leasehold.ErrInvalid, dir, format, args...)
	}
	certs, err := ReadCertificates(filepath.Join(dir, caCert))
	if errors.Is(err, fs.ErrNotExist) {
		return bad("there is no CA; \"leasehold pki init\" makes one")
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
		return bad("the key in %s is not that of the first certificate in %s", caKey, caCert)
	}
	if !cert.IsCA || len(cert.URIs) != 1 || cert.URIs[0].Scheme != "spiffe" {
		return bad("%s is not the certificate of a CA that \"leasehold pki init\" made", caCert)
	}
	return &Directory{dir: dir, ca: &authority{cert: cert, key: key, domain: cert.URIs[0].Host}}, nil
}

// Domain is the domain of all identities that the CA can issue.
func (d *Directory) Domain() string { return d.ca.domain }

// Authority is the CA's certificate.
func (d *Directory) Authority() *x509.Certificate { return d.ca.cert }

// Path is that of a file in the directory.
func (d *Directory) Path(name string) string { return filepath.Join(d.dir, name) }

// Issue writes a certificate and its key to a directory; "" is the party's own.
// What is there must be a certificate of the same identity: it is renewed, with
// the same hosts if none are given.
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

// existing is the certificate that would be replaced, nil if there is none. One
// of somebody else is not to be replaced.
func (d *Directory) existing(p *Party, dir string) (*x509.Certificate, error) {
	certs, err := ReadCertificates(filepath.Join(dir, leafCert))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(filepath.Join(dir, leafKey)); err == nil {
			return nil, leasehold.Errorf("write", leasehold.ErrExists, dir, "there is a key without a certificate, whose it is nobody knows; nothing is overwritten")
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if want := p.Identity(d.ca.domain); !slices.Contains(secure.Identities(certs[0]), want) {
		return nil, leasehold.Errorf("write", leasehold.ErrExists, dir, "the certificate there is of %q, not of %q; choose another directory", secure.Identities(certs[0]), want)
	}
	return certs[0], nil
}

// writeLeaf writes the roots only if there are none: while a CA is replaced,
// somebody has put two there.
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
	bad := leasehold.Errorf("read", leasehold.ErrInvalid, name, "it is not a key that \"leasehold pki init\" made")
	b, _ := pem.Decode(text)
	if b == nil {
		return nil, bad
	}
	key, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	if err != nil {
		return nil, bad // what was wrong with a key is nobody's business
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, bad
	}
	return private, nil
}

// maxFile bounds what is read: a file of ours has some kilobytes.
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
			return nil, bad("it has a PEM block %q, which is no certificate", b.Type)
		}
		cert, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, bad("certificate %d: %w", len(all)+1, err)
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, bad("there is no certificate in it, in PEM")
	}
	return all, nil
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not an ordinary file", name)
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

// writeFile writes a file beside and renames it, so that nobody sees half of it
// and what was there is whole until then.
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
