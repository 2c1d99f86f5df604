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

// privateKeys makes canaries of the keys in a directory: a line of their PEM, and what it encodes.
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
			t.Fatalf("%s is no key in PEM", file)
		}
		// After the beginning, which is the same for all keys of a kind.
		s.canaries = append(s.canaries, canary{"the private key " + file, string(block.Bytes[36:68])})
	}
}

// TestTLSKeepsSecrets: a manager with certificates and a policy, people with tokens, good and bad ones:
// nobody's key or token is in what is said about them, the audit included.
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
	ask := func(secret string) (status int) {
		args := []string{"status", "--managers=" + addr, ca, "--token-file=" + inFile(t, secret)}
		status, stdout, stderr := run(t, args...)
		s.add("leasehold "+strings.Join(args[:2], " "), stdout+stderr)
		return status
	}
	eventually(t, "the manager answers to who has the token", func() error {
		if ask(token) != 0 {
			return errNotYet
		}
		return nil
	})
	if ask(guess) == 0 {
		t.Error("a wrong token is taken")
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
	if said := m.said(t); !strings.Contains(said, "not known") && !strings.Contains(said, "refused") {
		t.Errorf("the refusal of a token is not in the log: %s", said)
	}
	s.panics(t, m)
	s.clean(t)
}
