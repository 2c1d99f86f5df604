//go:build unix

package e2e

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// acceptOnly returns the address of a listener that accepts connections and never
// replies.
func acceptOnly(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // it was never used
	return l.Addr().String()
}

// TestNoManager: without a manager that replies, the libraries and the command fail
// before their timeout, with an error that names the manager.
func TestNoManager(t *testing.T) {
	t.Parallel()
	const wait = time.Second
	for name, addr := range map[string]string{"no listener": freeAddr(t), "accept only": acceptOnly(t)} {
		for what, try := range map[string]func(context.Context) error{
			"owner": func(ctx context.Context) error {
				_, err := owner.Join(ctx, owner.Config{Namespace: "none", Managers: []string{addr}, Addr: addrOf("ann")})
				return err
			},
			"lookup": func(ctx context.Context) error {
				_, err := lookup.Open(ctx, lookup.Config{Namespace: "none", Managers: []string{addr}})
				return err
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				began := time.Now()
				err := try(ctx)
				if took := time.Since(began); took > wait+slack {
					t.Errorf("it took %v, the timeout is %v", took, wait)
				}
				if leasehold.KindOf(err) != leasehold.ErrUnavailable || !strings.Contains(err.Error(), addr) {
					t.Errorf("error %v, want one of kind %v that names %s", err, leasehold.ErrUnavailable, addr)
				}
			})
		}
		t.Run(name+"/command", func(t *testing.T) {
			t.Parallel()
			status, _, stderr := run(t, "status", "--timeout=1s", "--managers="+addr)
			wantRefused(t, status, stderr, addr)
		})
		t.Run(name+"/join", func(t *testing.T) {
			t.Parallel()
			status, _, stderr := run(t, "manager", "run", "--listen="+freeAddr(t), "--http=", "--name=m2",
				"--peer-listen="+freeAddr(t), "--join="+addr, "--data-dir="+filepath.Join(t.TempDir(), "data"))
			wantRefused(t, status, stderr, addr)
		})
	}
}

// TestOneManagerIsEnough: managers that do not listen or do not reply do not delay a
// client that also has the address of a working one.
func TestOneManagerIsEnough(t *testing.T) {
	t.Parallel()
	const ns = "enough"
	g := startLone(t)
	g.createNamespace(t, ns, keptLease)
	addrs := []string{freeAddr(t), acceptOnly(t), g.managers[0].addr}
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	o, err := owner.Join(ctx, owner.Config{Namespace: ns, Managers: addrs, Addr: addrOf("ann"), Name: "ann", Logger: testLogger(t, "ann")})
	if err != nil {
		t.Fatal(err)
	}
	g.waitForAssignment(t, ns, "ann")
	l, err := lookup.Open(ctx, lookup.Config{Namespace: ns, Managers: addrs, Logger: testLogger(t, "lookup")})
	if err != nil {
		t.Fatal(err)
	}
	if addr, ok := l.Find(0); !ok || addr != addrOf("ann") {
		t.Errorf("found %q", addr)
	}
	if status, stdout, stderr := run(t, "key", "find", "alice", "-n", ns, "--managers="+strings.Join(addrs, ",")); status != 0 || !strings.Contains(stdout, "ann") {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := o.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestNoSuchNamespace: the error for a missing namespace names the command that
// creates it.
func TestNoSuchNamespace(t *testing.T) {
	t.Parallel()
	g := startLone(t)
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	_, joining := owner.Join(ctx, owner.Config{Namespace: "absent", Managers: g.addrs(), Addr: addrOf("ann")})
	_, opening := lookup.Open(ctx, lookup.Config{Namespace: "absent", Managers: g.addrs()})
	for _, err := range []error{joining, opening} {
		if leasehold.KindOf(err) != leasehold.ErrNotFound || !strings.Contains(err.Error(), "leasehold namespace create absent") {
			t.Errorf("error %v, want kind %v and the command that creates the namespace", err, leasehold.ErrNotFound)
		}
	}
}

// TestBadFlags: a manager with invalid flags exits with an error that names the flag
// and the remedy, before it changes any file.
func TestBadFlags(t *testing.T) {
	t.Parallel()
	busy := acceptOnly(t)
	config := filepath.Join(t.TempDir(), "leasehold.yaml")
	writeFile(t, config, "lisen: 127.0.0.1:7400\n")
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"an unknown flag":          {[]string{"--lisen=x"}, []string{"--lisen", "--listen"}},
		"a flag without a value":   {[]string{"--listen"}, []string{"--listen"}},
		"an argument":              {[]string{"now"}, []string{`"now"`}},
		"no time":                  {[]string{"--ttl=soon"}, []string{"--ttl", "soon"}},
		"a typo in the file":       {[]string{"--config=" + config}, []string{config, "lisen", "listen"}},
		"no such file":             {[]string{"--config=/nosuch.yaml"}, []string{"/nosuch.yaml"}},
		"an address in use":        {[]string{"--listen=" + busy}, []string{busy, "in use", "--listen"}},
		"an http address in use":   {[]string{"--listen=" + freeAddr(t), "--http=" + busy}, []string{busy, "in use", "--http"}},
		"a peer address in use":    {[]string{"--listen=" + freeAddr(t), "--http=", "--peer-listen=" + busy}, []string{busy, "in use"}},
		"a foreign host":           {[]string{"--listen=192.0.2.1:7400"}, []string{"192.0.2.1:7400", "--listen"}},
		"etcd and a directory":     {[]string{"--etcd=127.0.0.1:1", "--data-dir=x"}, []string{"--etcd", "--data-dir"}},
		"an impossible directory":  {[]string{"--listen=" + freeAddr(t), "--http=", "--data-dir=/dev/null/x"}, []string{"/dev/null/x"}},
		"members without this one": {[]string{"--name=m9", "--members=m1=http://127.0.0.1:1"}, []string{"m9", "--name"}},
		"etcd without a listener":  {[]string{"--listen=" + freeAddr(t), "--http=", "--etcd=" + freeAddr(t)}, []string{"etcd"}},
		"etcd that does not reply": {[]string{"--listen=" + freeAddr(t), "--http=", "--etcd=" + busy}, []string{busy}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, stderr := run(t, append([]string{"manager", "run"}, test.args...)...)
			wantRefused(t, status, stderr, test.want...)
		})
	}
}
