package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// TestSecureAdvice: errors of TLS and access control come with advice.
func TestSecureAdvice(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("connection refused"), ""},
		{leasehold.Errorf("call", leasehold.ErrDenied, "", "no such role"), "access file"},
		{leasehold.Errorf("call", leasehold.ErrDenied, "", "the call has neither a client certificate nor a bearer token"), "--token-file"},
		{leasehold.Errorf("call", leasehold.ErrDenied, "", `the token "eve" expired at midnight`), "Create a token with 'leasehold token'"},
		{leasehold.Errorf("call", leasehold.ErrDenied, "", "the certificate was revoked"), "Create a new certificate with 'leasehold pki issue'"},
		{errors.New("the server rejects the client's certificate, or requires one"), "logs the reason"},
		{errors.New("the certificate has expired on Monday"), "renew the certificate"},
		{errors.New("the certificate is for m1, and not for m2"), "pki show"},
		{errors.New("tls: handshake failure"), "pki show"},
	} {
		advice := SecureAdvice(test.err)
		if (advice == "") != (test.want == "") || !strings.Contains(advice, test.want) {
			t.Errorf("%v: %q, want %q", test.err, advice, test.want)
		}
	}
}
