package pki

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/leasehold-dev/leasehold"
)

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
