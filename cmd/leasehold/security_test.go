package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A tlsGroup is a group of managers with TLS, a CA and certificates.
type tlsGroup struct {
	t     *testing.T
	pki   string
	addrs []string // of m1, m2, ...
	peers []string
}

func newTLSGroup(t *testing.T, managers int) *tlsGroup {
	t.Helper()
	ports, err := proc.FreePorts(2 * managers)
	if err != nil {
		t.Fatal(err)
	}
	f := &tlsGroup{t: t, pki: filepath.Join(t.TempDir(), "pki"), addrs: ports[:managers], peers: ports[managers:]}
	here := []string{"127.0.0.1"}
	parties := []pki.Party{
		{Role: pki.Operator, Name: "alice"},
		{Role: pki.Lookup, Namespace: "sessions"},
		{Role: pki.Owner, Namespace: "sessions", Name: "a", Hosts: here},
		{Role: pki.Owner, Namespace: "other", Name: "o", Hosts: here},
	}
	for i := range managers {
		parties = append(parties, pki.Party{Role: pki.Manager, Name: fmt.Sprintf("m%d", i+1), Hosts: here})
	}
	if _, _, err := pki.Create(f.pki, "example.org", parties, time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	return f
}

// of returns the path of a file in the directory of the CA.
func (f *tlsGroup) of(parts ...string) string {
	return filepath.Join(append([]string{f.pki}, parts...)...)
}

// start runs a manager until the test ends.
func (f *tlsGroup) start(i int, args ...string) {
	f.t.Helper()
	name := fmt.Sprintf("m%d", i+1)
	args = append([]string{
		"manager", "run", "--name", name, "--listen", f.addrs[i], "--http=", "--data-dir", filepath.Join(f.t.TempDir(), name),
		"--peer-listen", f.peers[i], "--tls-dir", f.of("manager", name), "--access", f.of("access.yaml"),
	}, args...)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var out, errs strings.Builder
	running.Go(func() {
		if ended := run(ctx, args, &out, &errs); ended != 0 {
			f.t.Errorf("%s ended with %d: %s", name, ended, errs.String())
		}
	})
	f.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// runAs runs a command with an identity, and returns its exit status and output.
func (f *tlsGroup) runAs(as string, args ...string) (int, string) {
	f.t.Helper()
	var out strings.Builder
	args = append(args, "--managers", strings.Join(f.addrs, ","), "--timeout", "20s", "--tls-dir", f.of(as))
	return run(f.t.Context(), args, &out, &out), out.String()
}

// await retries a command until it succeeds.
func (f *tlsGroup) await(as string, args ...string) string {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		ended, output := f.runAs(as, args...)
		if ended == 0 {
			return output
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%v: %s", args, output)
		}
	}
}

// TestAccessPolicy checks that a manager, and another one that joins it, permit each identity only what the
// policy grants.
func TestAccessPolicy(t *testing.T) {
	f := newTLSGroup(t, 2)
	f.start(0)
	f.await("operator/alice", "namespace", "create", "sessions")
	f.start(1, "--join", f.addrs[0])
	for deadline := time.Now().Add(time.Minute); ; {
		members := f.await("operator/alice", "manager", "list")
		if strings.Count(members, "voter  yes      https://") == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the second manager does not vote:\n%s", members)
		}
	}
	for _, test := range []struct {
		as   string
		args string
		want int
		text string
	}{
		{"operator/alice", "status", 0, "sessions"},
		{"lookup/sessions", "owner list -n sessions", 0, "No owner has joined"},
		{"lookup/sessions", "namespace create x", 2, "requires the role operator"},
		{"lookup/sessions", "manager list", 2, "requires the role manager or operator"},
		{"owner/other/o", "range list -n sessions", 2, "requires the role"},
		{"manager/m1", "namespace create x", 2, "requires the role operator"},
	} {
		if ended, output := f.runAs(test.as, strings.Fields(test.args)...); ended != test.want || !strings.Contains(output, test.text) {
			t.Errorf("%s: %s: status %d, %q", test.as, test.args, ended, output)
		}
	}
	f.checkOwners()
	f.checkTokens()
}

// checkOwners checks that owners can join only under their own names and in their own namespaces.
func (f *tlsGroup) checkOwners() {
	t := f.t
	for _, test := range []struct {
		as, name string
		joins    bool
	}{
		{"owner/sessions/a", "a", true},
		{"owner/sessions/a", "b", false},
		{"owner/other/o", "o", false},
		{"operator/alice", "alice", false},
	} {
		keeper, err := (&cli.Security{Dir: f.of(test.as)}).Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		o, err := owner.Join(ctx, owner.Config{
			Namespace: "sessions", Managers: f.addrs, Name: leasehold.OwnerID(test.name), Addr: "127.0.0.1:1", Credentials: keeper.Client(),
		})
		if err == nil {
			err = o.Close(ctx)
		}
		if (err == nil) != test.joins {
			t.Errorf("%s joins as %s: %v", test.as, test.name, err)
		}
		cancel()
		keeper.Close()
	}
}

// checkTokens checks that a client without a certificate is permitted what its token is granted, once running
// managers have reloaded the policy file.
func (f *tlsGroup) checkTokens() {
	t := f.t
	token, hash := pki.NewToken()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bare := f.of("bare") // without a certificate
	if err := os.Mkdir(bare, 0o700); err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(f.of("ca.crt"))
	if err == nil {
		err = os.WriteFile(filepath.Join(bare, "ca.crt"), ca, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if ended, output := f.runAs("bare", "status"); ended != 2 || !strings.Contains(output, "neither a client certificate nor a bearer token") {
		t.Errorf("no certificate and no token: status %d, %q", ended, output)
	}
	if ended, output := f.runAs("bare", "status", "--token-file", file); ended != 2 || strings.Contains(output, token) {
		t.Errorf("unknown token: status %d, %q", ended, output)
	}
	policy, err := os.ReadFile(f.of("access.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(policy), "rules:\n", "rules:\n  - {identity: \"token:bob\", role: lookup, namespaces: [sessions]}\n", 1) +
		"tokens:\n  - {name: bob, sha256: " + hash + "}\n"
	if err := os.WriteFile(f.of("access.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f.await("bare", "owner", "list", "-n", "sessions", "--token-file", file)
	if ended, output := f.runAs("bare", "namespace", "create", "x", "--token-file", file); ended != 2 || !strings.Contains(output, "token:bob") {
		t.Errorf("a lookup's token permits creating a namespace: status %d, %q", ended, output)
	}
}
