//go:build linux

package attacks

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// patience is how long an event may take that should take a second or two, on a computer
// that has other things to do. It is spent only when a test fails.
const patience = 45 * time.Second

// The namespace that the honest have in common. Leases are longer than what a busy computer
// may take away from a process, and are renewed often: that they are shows soon.
const (
	namespace = "honest"
	lease     = 6 * time.Second
	renew     = 100 * time.Millisecond
)

// Settings say how a castle is built.
type settings struct {
	args    []string // of the manager, besides the usual ones
	secured *keep    // if it speaks TLS
}

// A castle is a manager that is attacked, and those who rely on it.
type castle struct {
	addr, http string
	log        string // the file
	secured    *keep  // nil if all is in plain text
	beside     bool   // it is no manager, but what stands beside one
	process    *proc.Process
	honest     *honest
	papers     map[string]credentials.TransportCredentials // of the honest
}

// newCastle starts a manager and those who rely on it. They live until the test ends.
func newCastle(t *testing.T, with settings) *castle {
	t.Helper()
	ports, err := proc.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	c := &castle{
		addr: ports[0], http: ports[1], log: filepath.Join(t.TempDir(), "manager.log"), secured: with.secured,
		papers: make(map[string]credentials.TransportCredentials),
	}
	args := append([]string{
		"manager", "run", "--listen", c.addr, "--http", c.http, "--data-dir", filepath.Join(t.TempDir(), "data"), "--log-level", "info",
	}, with.args...)
	if c.secured != nil {
		args = append(args, c.secured.args()...)
	}
	for _, party := range []string{"owner/honest/owner-0", "owner/honest/owner-1", "owner/honest/owner-2", "lookup/honest", "operator/chief"} {
		c.papers[party] = insecure.NewCredentials()
		if c.secured != nil {
			c.papers[party] = c.secured.credentials(t, party)
		}
	}
	c.process = launch{name: "manager", log: c.log, program: leaseholdProgram(), args: args}.start(t)
	c.createNamespace(t, namespace)
	if c.secured != nil {
		c.createNamespace(t, other)
	}
	c.honest = newHonest(t, c)
	return c
}

// A launch says what to start.
type launch struct {
	name    string
	log     string // the file; "" for one of its own
	program string
	args    []string
	env     []string
	out     func(io.Reader) error // reads what it prints; nil if that goes to the log, too
}

// start starts a process that ends with the test, or with us.
func (l launch) start(t *testing.T) *proc.Process {
	t.Helper()
	p := &proc.Process{Name: l.name, Launch: proc.Launch{
		Program: l.program, Args: l.args, Env: l.env, Log: cmp.Or(l.log, filepath.Join(t.TempDir(), l.name+".log")), Output: l.out,
	}}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		if t.Failed() {
			t.Logf("%s %s\n%s", l.program, strings.Join(l.args, " "), proc.Tail(p.Launch.Log))
		}
	})
	return p
}

// eventually tries something until it works.
func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

func (c *castle) createNamespace(t *testing.T, name string) {
	t.Helper()
	conn := c.dial(t, "operator/chief")
	eventually(t, "create the namespace", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		policy := partition.Consistent{VirtualNodes: 8}
		_, err := leaseholdv1.NewAdminServiceClient(conn).CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{
			Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{
				Name: name, Policy: policy.Name(), VirtualNodes: uint32(policy.VirtualNodes),
				Timing: &leaseholdv1.Timing{Lease: int64(lease), Renew: int64(renew), Drift: 1.2},
			},
		})
		return err
	})
}

// dial returns a connection of somebody honest.
func (c *castle) dial(t *testing.T, party string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+c.addr, append(wire.DialOptions(), grpc.WithTransportCredentials(c.papers[party]))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // nothing is under way
	return conn
}

// memory is how much memory the manager has, in bytes.
func (c *castle) memory(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.process.Pid()))
	if err != nil {
		t.Fatalf("the manager is gone: %v", err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	size, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		t.Fatalf("/proc has %q: %v", size, err)
	}
	return n << 10
}

// quiet is a log that nobody reads.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
