package secure

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"slices"
	"time"
)

type revoked struct {
	serials map[string]map[serial]bool // by the issuer's name in DER
	lists   []list
}

// A list is the header of one revocation list.
type list struct {
	issuer  string
	until   time.Time // of the next update
	trusted bool      // its issuer is trusted; otherwise it is ignored
}

// A serial is a certificate's serial number; the standard allows 20 bytes.
type serial [20]byte

func serialOf(cert *x509.Certificate) (s serial, ok bool) {
	if n := cert.SerialNumber; n != nil && n.Sign() >= 0 && n.BitLen() <= 8*len(s) {
		n.FillBytes(s[:])
		return s, true
	}
	return s, false
}

// has reports whether a certificate is revoked. It costs two map lookups and does not
// allocate. A serial number that no list can contain counts as revoked: the standard does
// not permit it.
func (r *revoked) has(cert *x509.Certificate) bool {
	of := r.serials[string(cert.RawIssuer)]
	if of == nil {
		return false
	}
	s, ok := serialOf(cert)
	return !ok || of[s]
}

// parseRevoked parses lists and the certificates of their issuers.
func parseRevoked(name string, text []byte, m *material) (revoked, error) {
	lists, issuers, err := splitRevoked(name, text)
	if err != nil {
		return revoked{}, err
	}
	trustedCAs := slices.Clone(m.roots)
	for _, ca := range issuers {
		options := x509.VerifyOptions{Roots: m.pool, Intermediates: poolOf(issuers), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
		if _, err := ca.Verify(options); err == nil && ca.IsCA {
			trustedCAs = append(trustedCAs, ca)
		}
	}
	r := revoked{serials: make(map[string]map[serial]bool)}
	for _, l := range lists {
		trusted, err := signedByAny(l, trustedCAs)
		if err == nil && trusted {
			err = r.add(l)
		}
		if err != nil {
			return revoked{}, bad(name, "the list of %q: %w", clip(l.Issuer.String()), err)
		}
		r.lists = append(r.lists, list{issuer: clip(l.Issuer.String()), until: l.NextUpdate, trusted: trusted})
	}
	return r, nil
}

func splitRevoked(name string, text []byte) (lists []*x509.RevocationList, issuers []*x509.Certificate, err error) {
	found, err := blocks(name, text)
	if err != nil {
		return nil, nil, err
	}
	if len(found) == 0 {
		l, err := x509.ParseRevocationList(text)
		if err != nil {
			return nil, nil, bad(name, "it is not a certificate revocation list in PEM or DER: %w", err)
		}
		return []*x509.RevocationList{l}, nil, nil
	}
	for i, b := range found {
		switch b.Type {
		case pemRevoked:
			var l *x509.RevocationList
			l, err = x509.ParseRevocationList(b.Bytes)
			lists = append(lists, l)
		case pemCertificate:
			var ca *x509.Certificate
			ca, err = x509.ParseCertificate(b.Bytes)
			issuers = append(issuers, ca)
		default:
			return nil, nil, bad(name, "it has a PEM block %q, want %q, and %q of their issuers", clip(b.Type), pemRevoked, pemCertificate)
		}
		if err != nil {
			return nil, nil, bad(name, "PEM block %d: %w", i+1, err)
		}
	}
	return lists, issuers, nil
}

// signedByAny reports whether one of the CAs has signed the list. A list of an unknown CA
// is not an error: otherwise a root could not be removed before its list, or replaced by
// one with the same name. A list with the name, and the key ID if it has one, of a trusted
// CA but another signature is an error.
func signedByAny(l *x509.RevocationList, cas []*x509.Certificate) (bool, error) {
	var wrong error
	for _, ca := range cas {
		if !bytes.Equal(ca.RawSubject, l.RawIssuer) || otherKey(ca.SubjectKeyId, l.AuthorityKeyId) {
			continue
		}
		err := l.CheckSignatureFrom(ca)
		if err == nil {
			return true, nil
		}
		wrong = fmt.Errorf("its signature is not by the trusted CA of this name: %w", err)
	}
	return false, wrong
}

func otherKey(ca, list []byte) bool {
	return len(ca) > 0 && len(list) > 0 && !bytes.Equal(ca, list)
}

// add adds the entries of a list. A list with unknown critical extensions is rejected: they
// could change the meaning of its entries.
func (r *revoked) add(l *x509.RevocationList) error {
	if err := noneCritical(l.Extensions, asn1.ObjectIdentifier{2, 5, 29, 28}); err != nil {
		return err
	}
	of := r.serials[string(l.RawIssuer)]
	if of == nil {
		of = make(map[serial]bool, len(l.RevokedCertificateEntries))
		r.serials[string(l.RawIssuer)] = of
	}
	for _, entry := range l.RevokedCertificateEntries {
		if err := noneCritical(entry.Extensions, nil); err != nil {
			return err
		}
		if s, ok := serialOf(&x509.Certificate{SerialNumber: entry.SerialNumber}); ok {
			of[s] = true
		}
	}
	return nil
}

// noneCritical rejects critical extensions except a harmless one: the scope of a partial
// list, whose entries are revoked all the same.
func noneCritical(extensions []pkix.Extension, harmless asn1.ObjectIdentifier) error {
	for _, e := range extensions {
		if e.Critical && !e.Id.Equal(harmless) {
			return fmt.Errorf("its extension %v is critical and unknown: delta lists and indirect lists are not supported", e.Id)
		}
	}
	return nil
}

func poolOf(certs []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range certs {
		pool.AddCert(c)
	}
	return pool
}
