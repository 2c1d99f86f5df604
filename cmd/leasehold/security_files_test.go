package main

import (
	"path/filepath"
	"testing"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/secure"
)

// TestSecurityFiles: files by their flags prevail over those of the directory, whose
// revocation lists may come later; a certificate that is not there is left out.
func TestSecurityFiles(t *testing.T) {
	f := newFortress(t, 1)
	dir := f.of("operator", "alice")
	s := cli.Security{Dir: dir}
	want := secure.Config{
		Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), Roots: filepath.Join(dir, "ca.crt"),
		Revoked: filepath.Join(dir, "crl.pem"), RevokedLater: true,
	}
	check := func(what string) {
		t.Helper()
		got := s.Config(nil)
		if got.Cert != want.Cert || got.Key != want.Key || got.Roots != want.Roots || got.Revoked != want.Revoked || got.RevokedLater != want.RevokedLater {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	check("a directory")
	s.Ca, want.Roots = "other.crt", "other.crt"
	check("a file instead of one in it")
	s.Revoked, want.Revoked, want.RevokedLater = "other.pem", "other.pem", false
	check("revocation lists that must be there")
	s = cli.Security{Dir: f.pki}
	want = secure.Config{Roots: f.of("ca.crt"), Revoked: f.of("crl.pem"), RevokedLater: true}
	check("no certificate")
}
