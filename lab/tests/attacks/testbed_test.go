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

// eventTimeout limits events that take a second or two, with a margin for a loaded machine.
// Only failing tests wait for it.
const eventTimeout = 45 * time.Second

// The namespace of the honest clients. Leases are longer than the scheduling delays of a
// loaded machine. Renewals are frequent, so that missing renewals are detected soon.
const (
	namespace = "honest"
	lease     = 6 * time.Second
	renew     = 100 * time.Millisecond
)

// settings of a testbed.
type settings struct {
	args    []string   // of the manager, besides the usual ones
	secured *authority // nil: without TLS
}

// A testbed is a process under attack and the honest clients that use it.
type testbed struct {
	addr, http  string
	log         string     // the file
	secured     *authority // nil if all is in plain text
	adjacent    bool       // the process is not a manager: an agent, a gateway or an owner
	process     *proc.Process
	clients     *clients
	credentials map[string]credentials.TransportCredentials // of the honest clients
}

// newTestbed starts a manager and its honest clients. They run until the test ends.
func newTestbed(t *testing.T, with settings) *testbed {
	t.Helper()
	ports, err := proc.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	c := &testbed{
		addr: ports[0], http: ports[1], log: filepath.Join(t.TempDir(), "manager.log"), secured: with.secured,
		credentials: make(map[string]credentials.TransportCredentials),
	}
	args := append([]string{
		"manager", "run", "--listen", c.addr, "--http", c.http, "--data-dir", filepath.Join(t.TempDir(), "data"), "--log-level", "info",
	}, with.args...)
	if c.secured != nil {
		args = append(args, c.secured.args()...)
	}
	for _, party := range []string{"owner/honest/owner-0", "owner/honest/owner-1", "owner/honest/owner-2", "lookup/honest", "operator/chief"} {
		c.credentials[party] = insecure.NewCredentials()
		if c.secured != nil {
			c.credentials[party] = c.secured.credentials(t, party)
		}
	}
	c.process = launch{name: "manager", log: c.log, program: leaseholdProgram(), args: args}.start(t)
	c.createNamespace(t, namespace)
	if c.secured != nil {
		c.createNamespace(t, other)
	}
	c.clients = newClients(t, c)
	return c
}

// A launch is the command of a process.
type launch struct {
	name    string
	log     string // the file; "": a new one
	program string
	args    []string
	env     []string
	out     func(io.Reader) error // reads standard output; nil: it is logged
}

// start starts a process that ends with the test or with this process.
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

// eventually calls try until it succeeds, or fails the test after eventTimeout.
func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
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

func (c *testbed) createNamespace(t *testing.T, name string) {
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

// dial returns a connection of an honest client.
func (c *testbed) dial(t *testing.T, party string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+c.addr, append(wire.DialOptions(), grpc.WithTransportCredentials(c.credentials[party]))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // no call is in progress
	return conn
}

// memory returns the resident memory of the process, in bytes.
func (c *testbed) memory(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.process.Pid()))
	if err != nil {
		t.Fatalf("the manager has ended: %v", err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	size, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		t.Fatalf("/proc has %q: %v", size, err)
	}
	return n << 10
}

// discardLogger returns a logger without output.
func discardLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }
