package pki

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
)

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
