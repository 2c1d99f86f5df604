package secure_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"testing"

	"github.com/leasehold-dev/leasehold/secure"
)

// TestIdentitiesAreNotNormalized: a URI that url.Parse would normalize is not an identity.
func TestIdentitiesAreNotNormalized(t *testing.T) {
	ca := newRoot(t, "ours")
	for uri, want := range map[string]int{
		"spiffe://example.org/manager/m1":  1,
		"spiffe://example.org/manager/m1#": 0,
		"SPIFFE://example.org/manager/m1":  0,
		"https://example.org/manager/m1":   1,
		"https://example.org/manager/m1#":  0,
		"HTTPS://example.org/manager/m1":   0,
	} {
		names, err := asn1.Marshal([]asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte(uri)}})
		if err != nil {
			t.Fatal(err)
		}
		cert := ca.issue(t, func(c *x509.Certificate) {
			c.URIs, c.DNSNames, c.IPAddresses = nil, nil, nil
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: names}}
		}).cert
		if ids := secure.Identities(cert); len(ids) != want {
			t.Errorf("%s: %q", uri, ids)
		}
	}
}
