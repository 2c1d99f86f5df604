package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/server/cli"
)

// TestConnectionMistakes checks the errors of clients that a manager with TLS rejects: the first line
// states the cause, and the second one, which is the last, the advice.
func TestConnectionMistakes(t *testing.T) {
	f := newTLSGroup(t, 1)
	f.start(0)
	f.await("operator/alice", "namespace", "create", "sessions")
	create := func(domain string, now time.Time) string {
		dir := filepath.Join(t.TempDir(), "pki")
		if _, _, err := pki.Create(dir, domain, []pki.Party{{Role: pki.Operator, Name: "alice"}}, now, time.Hour); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "operator", "alice")
	}
	own := []string{"--tls-dir", f.of("operator", "alice")}
	for name, test := range map[string]struct {
		args          []string
		cause, advice string
	}{
		"plaintext":           {nil, "no manager answers: " + f.addrs[0] + ": the server closed the plaintext connection; it may require TLS and certificates\n", "pass your certificate with --tls-dir"},
		"CA of another group": {[]string{"--tls-dir", create("other.example.org", time.Now())}, "no manager answers: ", "Check the server's certificate with 'leasehold pki show'"},
		"no certificate":      {[]string{"--tls-ca", f.of("ca.crt")}, "has neither", "Authenticate with a certificate"},
		"wrong role":          {[]string{"--tls-dir", f.of("owner", "sessions", "a")}, "has the role owner", "no rule that grants this identity the permission"},
		"wrong clock":         {[]string{"--tls-dir", create("example.org", time.Now().Add(48*time.Hour))}, "is not valid before", ""},
		"unknown namespace":   {append(own, "-n", "session"), `"session"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			args := append([]string{"owner", "list", "--managers", f.addrs[0], "--timeout", "20s"}, test.args...)
			if name != "unknown namespace" {
				args = append([]string{"status", "--managers", f.addrs[0], "--timeout", "20s"}, test.args...)
			}
			got := run(t.Context(), args, &out, &out)
			cause, advice, _ := strings.Cut(out.String(), "\n")
			if got != int(cli.StatusTrouble) || !strings.Contains(cause+"\n", test.cause) || !strings.Contains(advice, test.advice) || strings.Count(out.String(), "\n") > 2 {
				t.Errorf("exit status %d:\n%s", got, out.String())
			}
		})
	}
}
