package secure

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// Operations of errors.
const (
	opOpen   = "open certificates"
	opReload = "reload certificates"
)

// maxFileBytes is enough for about 400,000 revoked certificates.
const maxFileBytes = 16 << 20

// files are the contents of the files of a Config at one read.
type files struct {
	cert, key, roots, revoked []byte
}

// readFiles reads all files completely: they are small, and an unchanged timestamp proves
// nothing. If listed, the file with revocation lists has existed and is required.
func readFiles(c *Config, listed bool) (files, error) {
	var f files
	var err error
	for _, file := range []struct {
		name  string
		to    *[]byte
		ofKey bool
	}{
		{c.Cert, &f.cert, false},
		{c.Key, &f.key, true},
		{c.Roots, &f.roots, false},
		{c.Revoked, &f.revoked, false},
	} {
		if file.name == "" {
			continue
		}
		*file.to, err = readFile(file.name, file.ofKey)
		if file.to == &f.revoked && c.RevokedLater && !listed && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files{}, err
		}
	}
	return f, nil
}

// digest identifies the contents, so that no copy of the private key needs to be kept.
func (f files) digest() [sha256.Size]byte {
	h := sha256.New()
	for _, text := range [][]byte{f.cert, f.key, f.roots, f.revoked} {
		size := int64(len(text))
		if text == nil {
			size = -1 // a missing file differs from an empty one
		}
		_ = binary.Write(h, binary.BigEndian, size) // a hash never fails
		h.Write(text)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func bad(file, format string, args ...any) error {
	return leasehold.Errorf("read", leasehold.ErrInvalid, file, format, args...)
}

// readFile reads a regular file; a pipe could block forever.
func readFile(name string, isKey bool) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, bad(name, "%w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, bad(name, "it is not a regular file")
	}
	f, err := os.Open(name) // #nosec G304 -- the operator names the file
	if err != nil {
		return nil, bad(name, "%w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err = f.Stat(); err != nil {
		return nil, bad(name, "%w", err)
	}
	const forbidden = 0o037 // any access by others; writing and executing by the group
	if mode := info.Mode().Perm(); isKey && mode&forbidden != 0 && runtime.GOOS != "windows" {
		return nil, bad(name, "its mode is %#o: only its owner, and its group for reading, may access a private key; chmod 0600 %s", mode, name)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, bad(name, "%w", err)
	}
	if len(text) > maxFileBytes {
		return nil, bad(name, "it has more than %d MiB", maxFileBytes>>20)
	}
	return text, nil
}

// blocks returns the PEM blocks of a text. Text between them is ignored, but every block
// must be complete: a truncated file is an error.
func blocks(name string, text []byte) ([]*pem.Block, error) {
	var all []*pem.Block
	for rest := text; ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		all = append(all, b)
	}
	if begun := strings.Count(string(text), "-----BEGIN"); begun != len(all) {
		return nil, bad(name, "of %d PEM blocks, only %d are complete: the file is damaged or truncated", begun, len(all))
	}
	return all, nil
}

// blocksOf returns the blocks of one kind. There must be at least one, and no other kind.
func blocksOf(name, kind string, text []byte) ([][]byte, error) {
	found, err := blocks(name, text)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, b := range found {
		if b.Type != kind {
			return nil, bad(name, "it has a PEM block %q, want only %q", clip(b.Type), kind)
		}
		all = append(all, b.Bytes)
	}
	if len(all) == 0 {
		hint := ""
		if len(text) > 0 && text[0] == 0x30 {
			hint = `; it looks like DER: convert it with "openssl x509 -inform der"`
		}
		return nil, bad(name, "it has no PEM block %q%s", kind, hint)
	}
	return all, nil
}

// material is the parsed contents of the files at one read. It is immutable, so that each
// handshake uses consistent files.
type material struct {
	digest  [sha256.Size]byte
	cert    *tls.Certificate // nil for a client without
	end     time.Time        // of cert and its intermediate certificates
	flaws   []string         // of cert, independent of the time
	roots   []*x509.Certificate
	pool    *x509.CertPool // of roots
	revoked revoked
	listed  bool          // the file with revocation lists exists
	changed chan struct{} // closed when newer material is in force
}

// parse parses and checks all files.
func parse(c *Config, f files, now time.Time) (*material, error) {
	m := &material{digest: f.digest(), changed: make(chan struct{})}
	var err error
	if m.roots, err = parseRoots(c.Roots, f.roots); err != nil {
		return nil, err
	}
	m.pool = poolOf(m.roots)
	if c.Cert != "" {
		if m.cert, err = parsePair(c, f, now); err != nil {
			return nil, err
		}
		m.end = m.certEnd()
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
	all, err := blocksOf(name, pemCertificate, text)
	if err != nil {
		return nil, err
	}
	roots := make([]*x509.Certificate, len(all))
	for i, der := range all {
		if roots[i], err = x509.ParseCertificate(der); err != nil {
			return nil, bad(name, "certificate %d: %w", i+1, err)
		}
	}
	for _, root := range roots {
		if !root.IsCA {
			return nil, bad(name, "the certificate of %s is not a CA's: want the certificates of the CAs that sign those of peers", nameOf(root))
		}
	}
	return roots, nil
}

const (
	pemCertificate = "CERTIFICATE"
	pemRevoked     = "X509 CRL"
)

// parsePair parses the process's certificate and key. A certificate that every peer would
// reject is an error here, and not only in handshakes.
func parsePair(c *Config, f files, now time.Time) (*tls.Certificate, error) {
	if _, err := blocksOf(c.Cert, pemCertificate, f.cert); err != nil {
		return nil, err
	}
	if _, err := blocks(c.Key, f.key); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, bad(c.Cert, "with the key in %s: %w", c.Key, err)
	}
	leaf := pair.Leaf
	if err := checkLeaf(leaf); err != nil {
		return nil, bad(c.Cert, "%w", err)
	}
	if now.After(leaf.NotAfter) {
		return nil, bad(c.Cert, "it expired on %s: renew it", date(leaf.NotAfter))
	}
	if now.Before(leaf.NotBefore) {
		return nil, bad(c.Cert, "it is not valid before %s: wait, or check this computer's clock", date(leaf.NotBefore))
	}
	return &pair, nil
}

func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// nameOf returns the quoted name of a certificate for messages.
func nameOf(cert *x509.Certificate) string {
	name := cert.Subject.String()
	switch {
	case len(cert.URIs) > 0:
		name = cert.URIs[0].String()
	case len(cert.DNSNames) > 0:
		name = cert.DNSNames[0]
	}
	return strconv.Quote(clip(name))
}

func (m *material) serverCert() (*tls.Certificate, error) {
	if m.cert == nil {
		return nil, errors.New("a server needs a certificate: set Config.Cert and Config.Key")
	}
	return m.cert, nil
}
