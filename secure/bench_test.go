package secure_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold/secure"
)

// BenchmarkHandshake runs both sides of a handshake with certificates on both.
func BenchmarkHandshake(b *testing.B) {
	ca := newRoot(b, "ours")
	client := newPlace(b, ca.issue(b, uris(cacheAID)), ca).open().Client()
	server := newPlace(b, ca.issue(b, uris(m1ID), hosts("m1")), ca).open().ServerWith(secure.Required)
	for b.Loop() {
		if clientErr, serverErr := shake(b, client, server, "m1:7400"); clientErr != nil || serverErr != nil {
			b.Fatal(clientErr, serverErr)
		}
	}
}

func BenchmarkRevoked(b *testing.B) {
	ca := newRoot(b, "ours")
	p := newPlace(b, ca.issue(b, uris(m1ID)), ca)
	p.revoke(ca.revoke(b, nil, numbered(4711)))
	keeper, cert := p.open(), ca.issue(b, uris(cacheAID)).cert
	for b.Loop() {
		keeper.Revoked(cert)
	}
}
