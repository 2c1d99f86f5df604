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

// Operations, as errors name them.
const (
	opOpen   = "open certificates"
	opReload = "reload certificates"
)

// maxFile is how long each file may be: about 400,000 revoked certificates.
const maxFile = 16 << 20

// files are what the files of a Config had in them at one reading.
type files struct {
	cert, key, roots, revoked []byte
}

// readFiles reads all of them, whole, every time: they are small, and a time
// stamp that did not change proves nothing. Listed: there were revocation lists before.
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

// digest tells readings apart, so that nobody needs to keep a private key's text.
func (f files) digest() [sha256.Size]byte {
	h := sha256.New()
	for _, text := range [][]byte{f.cert, f.key, f.roots, f.revoked} {
		size := int64(len(text))
		if text == nil {
			size = -1 // a file that is not there is not an empty one
		}
		_ = binary.Write(h, binary.BigEndian, size) // a hash takes everything
		h.Write(text)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func bad(file, format string, args ...any) error {
	return leasehold.Errorf("read", leasehold.ErrInvalid, file, format, args...)
}

// readFile reads a file that must be an ordinary one, since a pipe could keep
// us waiting for ever.
func readFile(name string, isKey bool) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, bad(name, "%w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, bad(name, "it is not an ordinary file")
	}
	f, err := os.Open(name) // #nosec G304 -- the operator names the file
	if err != nil {
		return nil, bad(name, "%w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err = f.Stat(); err != nil {
		return nil, bad(name, "%w", err)
	}
	const tooOpen = 0o037 // all that others may, and what the group may besides reading
	if mode := info.Mode().Perm(); isKey && mode&tooOpen != 0 && runtime.GOOS != "windows" {
		return nil, bad(name, "its mode is %#o: a private key is for its user alone, or for reading by its group; chmod 0600 %s", mode, name)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, bad(name, "%w", err)
	}
	if len(text) > maxFile {
		return nil, bad(name, "it has more than %d MiB", maxFile>>20)
	}
	return text, nil
}

// blocks are the PEM blocks of a text. Whatever is written around them is taken
// for a comment, but every beginning must have its end: half a file is none.
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
		return nil, bad(name, "of %d PEM blocks that begin there, %d can be read: it is damaged, or still being written", begun, len(all))
	}
	return all, nil
}

// blocksOf are the blocks of one kind; there must be at least one, and no other.
func blocksOf(name, kind string, text []byte) ([][]byte, error) {
	found, err := blocks(name, text)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, b := range found {
		if b.Type != kind {
			return nil, bad(name, "it has a PEM block %q: want %q only", clip(b.Type), kind)
		}
		all = append(all, b.Bytes)
	}
	if len(all) == 0 {
		hint := ""
		if len(text) > 0 && text[0] == 0x30 {
			hint = `; it looks like DER, of which "openssl x509 -inform der" makes PEM`
		}
		return nil, bad(name, "there is no PEM block %q in it%s", kind, hint)
	}
	return all, nil
}

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
			return nil, bad(name, "the certificate of %s is not that of a CA: want those of the CAs that sign our peers' certificates", nameOf(root))
		}
	}
	return roots, nil
}

const (
	pemCertificate = "CERTIFICATE"
	pemRevoked     = "X509 CRL"
)

// parsePair reads our own certificate. One that nobody would accept is an error
// now rather than in every handshake.
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
		return nil, bad(c.Cert, "it is not valid before %s: wait, or look at this computer's clock", date(leaf.NotBefore))
	}
	return &pair, nil
}

func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// nameOf is how messages call a certificate. It is quoted, whatever is in it.
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

func (m *material) own() (*tls.Certificate, error) {
	if m.cert == nil {
		return nil, errors.New("we have no certificate: Config.Cert and Config.Key name none")
	}
	return m.cert, nil
}
