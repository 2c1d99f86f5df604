//go:build unix

package e2e

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// privateKeys adds canaries for the private keys in a directory.
func (s *sweep) privateKeys(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "tls.key"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d keys in %s, %v", len(files), dir, err)
	}
	for _, file := range append(files, filepath.Join(dir, "ca.key")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		if block == nil || len(block.Bytes) < 80 {
			t.Fatalf("%s is not a PEM key", file)
		}
		// Not the first bytes, which all keys of a type have in common.
		s.canaries = append(s.canaries, canary{"the private key " + file, string(block.Bytes[36:68])})
	}
}

// TestTLSKeepsSecrets: with TLS and an access policy, no private key or token, valid or not,
// appears in logs, the audit log, pages, traces or stacks.
func TestTLSKeepsSecrets(t *testing.T) {
	t.Parallel()
	s := newSweep()
	dir := filepath.Join(t.TempDir(), "pki")
	if status, _, stderr := run(t, "pki", "init", "--dir="+dir); status != 0 {
		t.Fatal(stderr)
	}
	s.privateKeys(t, dir)
	token, guess := s.secret("a token"), s.secret("a token that is wrong")
	hash := sha256.Sum256([]byte(token))
	policy, err := os.ReadFile(filepath.Join(dir, "access.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(policy) + "  - identity: token:alice\n    role: operator\n    namespaces: [\"*\"]\n" +
		"tokens:\n  - name: alice\n    sha256: " + hex.EncodeToString(hash[:]) + "\n"
	if err := os.WriteFile(filepath.Join(dir, "access.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	addr, page, debug := freeAddr(t), freeAddr(t), freeAddr(t)
	env, collect := s.traces(t)
	m := launch{
		env: env, program: leaseholdProgram, log: filepath.Join(t.TempDir(), "manager.log"),
		args: []string{
			"manager", "run", "--listen=" + addr, "--http=" + page, "--debug-listen=" + debug, "--log-level=debug", "--data-dir=" + t.TempDir(),
			"--tls-dir=" + filepath.Join(dir, "manager", "m1"), "--access=" + filepath.Join(dir, "access.yaml"),
		},
	}.start(t)
	ca := "--tls-ca=" + filepath.Join(dir, "ca.crt")
	query := func(secret string) (status int) {
		args := []string{"status", "--managers=" + addr, ca, "--token-file=" + inFile(t, secret)}
		status, stdout, stderr := run(t, args...)
		s.add("leasehold "+strings.Join(args[:2], " "), stdout+stderr)
		return status
	}
	eventually(t, "the manager accepts the token", func() error {
		if query(token) != 0 {
			return errNotYet
		}
		return nil
	})
	if query(guess) == 0 {
		t.Error("a wrong token is accepted")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, secret := range []string{token, guess} {
		for _, path := range []string{"/metrics", "/api/session", "/"} {
			s.getWith(t, client, "https://"+page+path, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) })
		}
	}
	collect()
	s.debug(t, debug)
	s.process(t, m.Pid())
	if output := m.output(t); !strings.Contains(output, "not known") && !strings.Contains(output, "refused") {
		t.Errorf("the refused token is not logged: %s", output)
	}
	s.panics(t, m)
	s.clean(t)
}
