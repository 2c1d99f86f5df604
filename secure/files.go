package secure

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

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

// readFile reads a file that must be an ordinary one, since a pipe could keep
// us waiting for ever.
func readFile(name string, isKey bool) ([]byte, error) {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("read", leasehold.ErrInvalid, name, format, args...)
	}
	if info, err := os.Stat(name); err != nil {
		return nil, bad("%w", err)
	} else if !info.Mode().IsRegular() {
		return nil, bad("it is not an ordinary file")
	}
	f, err := os.Open(name) // #nosec G304 -- the operator names the file
	if err != nil {
		return nil, bad("%w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, bad("%w", err)
	}
	const tooOpen = 0o037 // all that others may, and what the group may besides reading
	if mode := info.Mode().Perm(); isKey && mode&tooOpen != 0 && runtime.GOOS != "windows" {
		return nil, bad("its mode is %#o: a private key is for its user alone, or for reading by its group; chmod 0600 %s", mode, name)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, bad("%w", err)
	}
	if len(text) > maxFile {
		return nil, bad("it has more than %d MiB", maxFile>>20)
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
		return nil, leasehold.Errorf("read", leasehold.ErrInvalid, name, "of %d PEM blocks that begin there, %d can be read: it is damaged, or still being written", begun, len(all))
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
			return nil, leasehold.Errorf("read", leasehold.ErrInvalid, name, "it has a PEM block %q: want %q only", clip(b.Type), kind)
		}
		all = append(all, b.Bytes)
	}
	if len(all) == 0 {
		return nil, leasehold.Errorf("read", leasehold.ErrInvalid, name, "there is no PEM block %q in it%s", kind, notPEM(text))
	}
	return all, nil
}

// notPEM guesses at what a file without a PEM block is.
func notPEM(text []byte) string {
	if len(text) > 0 && text[0] == 0x30 {
		return fmt.Sprintf("; it looks like DER, of which %q makes PEM", "openssl x509 -inform der")
	}
	return ""
}
