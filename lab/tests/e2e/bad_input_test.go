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

// halfDead returns the address of something that accepts connections and never
// says a word.
func halfDead(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody else does
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // nothing was ever done with it
	return l.Addr().String()
}

// TestNoManager: without a manager that answers, the libraries and the command
// give up in time and name it.
func TestNoManager(t *testing.T) {
	t.Parallel()
	const wait = time.Second
	for name, addr := range map[string]string{"nobody listens": freeAddr(t), "half dead": halfDead(t)} {
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
					t.Errorf("it took %v, and had %v", took, wait)
				}
				if leasehold.KindOf(err) != leasehold.ErrUnavailable || !strings.Contains(err.Error(), addr) {
					t.Errorf("error %v, want one of kind %v that names %s", err, leasehold.ErrUnavailable, addr)
				}
			})
		}
		t.Run(name+"/command", func(t *testing.T) {
			t.Parallel()
			status, _, stderr := run(t, "status", "--timeout=1s", "--managers="+addr)
			refused(t, status, stderr, addr)
		})
		t.Run(name+"/join", func(t *testing.T) {
			t.Parallel()
			status, _, stderr := run(t, "manager", "run", "--listen="+freeAddr(t), "--http=", "--name=m2",
				"--peer-listen="+freeAddr(t), "--join="+addr, "--data-dir="+filepath.Join(t.TempDir(), "data"))
			refused(t, status, stderr, addr)
		})
	}
}

// TestOneManagerIsEnough: managers that are dead or half dead delay nobody who
// knows a good one.
func TestOneManagerIsEnough(t *testing.T) {
	t.Parallel()
	const ns = "enough"
	g := startLone(t)
	g.createNamespace(t, ns, keptLease)
	addrs := []string{freeAddr(t), halfDead(t), g.managers[0].addr}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o, err := owner.Join(ctx, owner.Config{Namespace: ns, Managers: addrs, Addr: addrOf("ann"), Name: "ann", Logger: journal(t, "ann")})
	if err != nil {
		t.Fatal(err)
	}
	g.settled(t, ns, "ann")
	l, err := lookup.Open(ctx, lookup.Config{Namespace: ns, Managers: addrs, Logger: journal(t, "lookup")})
	if err != nil {
		t.Fatal(err)
	}
	if addr, ok := l.Find(0); !ok || addr != addrOf("ann") {
		t.Errorf("found %q", addr)
	}
	if status, stdout, stderr := run(t, "key", "find", "alice", "-n", ns, "--managers="+strings.Join(addrs, ",")); status != 0 || !strings.Contains(stdout, "ann") {
		t.Errorf("the command ended with status %d: %s%s", status, stdout, stderr)
	}
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := o.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestNoSuchNamespace: whoever asks for what is not there is told at once how to
// make it.
func TestNoSuchNamespace(t *testing.T) {
	t.Parallel()
	g := startLone(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, joining := owner.Join(ctx, owner.Config{Namespace: "absent", Managers: g.addrs(), Addr: addrOf("ann")})
	_, opening := lookup.Open(ctx, lookup.Config{Namespace: "absent", Managers: g.addrs()})
	for _, err := range []error{joining, opening} {
		if leasehold.KindOf(err) != leasehold.ErrNotFound || !strings.Contains(err.Error(), "leasehold namespace create absent") {
			t.Errorf("error %v, want one of kind %v that says how to make it", err, leasehold.ErrNotFound)
		}
	}
}

// TestBadFlags: a manager that is not told properly what to do says what is
// wrong, and how to mend it, before it touches anything.
func TestBadFlags(t *testing.T) {
	t.Parallel()
	busy := halfDead(t)
	config := filepath.Join(t.TempDir(), "leasehold.yaml")
	writeFile(t, config, "lisen: 127.0.0.1:7400\n")
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"an unknown flag":             {[]string{"--lisen=x"}, []string{"--lisen", "--listen"}},
		"a flag without a value":      {[]string{"--listen"}, []string{"--listen"}},
		"an argument":                 {[]string{"now"}, []string{`"now"`}},
		"no time":                     {[]string{"--ttl=soon"}, []string{"--ttl", "soon"}},
		"a typo in the file":          {[]string{"--config=" + config}, []string{config, "lisen", "listen"}},
		"no such file":                {[]string{"--config=/nosuch.yaml"}, []string{"/nosuch.yaml"}},
		"an address in use":           {[]string{"--listen=" + busy}, []string{busy, "in use", "--listen"}},
		"an http address in use":      {[]string{"--listen=" + freeAddr(t), "--http=" + busy}, []string{busy, "in use", "--http"}},
		"a peer address in use":       {[]string{"--listen=" + freeAddr(t), "--http=", "--peer-listen=" + busy}, []string{busy, "in use"}},
		"a host that is not ours":     {[]string{"--listen=192.0.2.1:7400"}, []string{"192.0.2.1:7400", "--listen"}},
		"etcd and a directory":        {[]string{"--etcd=127.0.0.1:1", "--data-dir=x"}, []string{"--etcd", "--data-dir"}},
		"a directory that cannot be":  {[]string{"--listen=" + freeAddr(t), "--http=", "--data-dir=/dev/null/x"}, []string{"/dev/null/x"}},
		"members without this one":    {[]string{"--name=m9", "--members=m1=http://127.0.0.1:1"}, []string{"m9", "--name"}},
		"etcd that nobody listens on": {[]string{"--listen=" + freeAddr(t), "--http=", "--etcd=" + freeAddr(t)}, []string{"etcd"}},
		"etcd that is half dead":      {[]string{"--listen=" + freeAddr(t), "--http=", "--etcd=" + busy}, []string{busy}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, stderr := run(t, append([]string{"manager", "run"}, test.args...)...)
			refused(t, status, stderr, test.want...)
		})
	}
}
