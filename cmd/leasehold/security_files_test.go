package main

import (
	"path/filepath"
	"testing"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/secure"
)

// TestSecurityFiles checks that flags for files override --tls-dir, that the revocation lists of a directory may
// be created later, and that a missing certificate is omitted.
func TestSecurityFiles(t *testing.T) {
	f := newTLSGroup(t, 1)
	dir := f.of("operator", "alice")
	s := cli.Security{Dir: dir}
	want := secure.Config{
		Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), Roots: filepath.Join(dir, "ca.crt"),
		Revoked: filepath.Join(dir, "crl.pem"), RevokedLater: true,
	}
	check := func(name string) {
		t.Helper()
		got := s.Config(nil)
		if got.Cert != want.Cert || got.Key != want.Key || got.Roots != want.Roots || got.Revoked != want.Revoked || got.RevokedLater != want.RevokedLater {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	check("directory")
	s.Ca, want.Roots = "other.crt", "other.crt"
	check("directory with another CA file")
	s.Revoked, want.Revoked, want.RevokedLater = "other.pem", "other.pem", false
	check("required revocation lists")
	s = cli.Security{Dir: f.pki}
	want = secure.Config{Roots: f.of("ca.crt"), Revoked: f.of("crl.pem"), RevokedLater: true}
	check("no certificate")
}
