package proc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// CommandVariable is the environment variable with the path of the built leasehold command.
// lab/bench/all builds it once, before any measurement.
const CommandVariable = "BENCH_LEASEHOLD"

// A Manager is a process of "leasehold manager run".
type Manager = proc.Manager

// Managers is a group of managers, built from this tree, with embedded stores.
type Managers struct {
	*proc.Managers
	dir string
}

// StartManagers starts a group and waits for its leader. It builds the command, unless
// [CommandVariable] names it. Connections are in plain text.
func StartManagers(ctx context.Context, count int) (g *Managers, err error) {
	g = &Managers{}
	defer func() {
		if err != nil {
			g.Close()
			g = nil
		}
	}()
	if g.dir, err = os.MkdirTemp("", "bench-managers-"); err != nil {
		return g, err
	}
	program := os.Getenv(CommandVariable)
	if program == "" {
		program = filepath.Join(g.dir, "leasehold")
		if err := GoBuild(ctx, "../..", program, "./cmd/leasehold"); err != nil {
			return g, err
		}
	}
	managers, err := proc.NewManagers(proc.ManagersConfig{
		Program: program, Dir: g.dir, Count: count,
		Flags: func(proc.Member) []string { return []string{"--log-level", "error"} },
		Ended: func(err error) { fmt.Fprintln(os.Stderr, err) },
	})
	if err != nil {
		return g, err
	}
	g.Managers = managers
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return g, g.Start(ctx)
}

// GoBuild builds without debugging information, which doubles the link time.
func GoBuild(ctx context.Context, dir, to string, packages ...string) error {
	return goBuild(ctx, nil, dir, to, packages...)
}

// GoBuildModule is GoBuild for a module outside of the workspace.
func GoBuildModule(ctx context.Context, dir, to string, packages ...string) error {
	return goBuild(ctx, []string{"GOWORK=off"}, dir, to, packages...)
}

func goBuild(ctx context.Context, env []string, dir, to string, packages ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-ldflags=-s -w", "-o", to}, packages...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building in %s: %w: %s", dir, err, bytes.TrimSpace(text))
	}
	return nil
}

// Dial connects to a manager in plain text.
func Dial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
}

// CreateNamespace creates a namespace, and retries until the manager leads. It succeeds if the
// namespace exists, since an earlier attempt without a reply may have created it.
func CreateNamespace(ctx context.Context, conn grpc.ClientConnInterface, config *leaseholdv1.NamespaceConfig) error {
	admin := leaseholdv1.NewAdminServiceClient(conn)
	return Until(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		_, err := admin.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config})
		if err = wire.ToError(err); leasehold.KindOf(err) == leasehold.ErrExists {
			return nil
		}
		return err
	})
}

// EverySecond is a static policy of 2n ranges of equal size. Every second one belongs to an
// owner, so that its ranges are not merged.
func EverySecond(namespace, owner string, n int) *leaseholdv1.NamespaceConfig {
	config := &leaseholdv1.NamespaceConfig{Name: namespace, Policy: "static"}
	size := 1 << 63 / uint64(n)
	for i := range uint64(n) {
		config.Static = append(config.Static,
			&leaseholdv1.StaticSlot{Start: 2 * i * size, Owner: owner}, &leaseholdv1.StaticSlot{Start: (2*i + 1) * size})
	}
	return config
}

// Leader waits until a manager leads.
func (g *Managers) Leader(ctx context.Context) (*Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return g.WaitForLeader(ctx)
}

// CreateNamespace creates a namespace, and retries until a manager leads.
func (g *Managers) CreateNamespace(ctx context.Context, config *leaseholdv1.NamespaceConfig) error {
	return Until(ctx, 10*time.Millisecond, func(ctx context.Context) error {
		_, err := g.Managers.CreateNamespace(ctx, config)
		return err
	})
}

// Status returns the status of a manager.
func (g *Managers) Status(ctx context.Context, m *Manager) (status *leaseholdv1.GetStatusResponse, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err = Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		return g.On(ctx, slices.Index(g.All, m), func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
			status, err = leaseholdv1.NewAdminServiceClient(conn).GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
			return err
		})
	})
	return status, err
}

// Namespace returns the status of a namespace at the leader.
func (g *Managers) Namespace(ctx context.Context, name string) (*leaseholdv1.NamespaceStatus, error) {
	leader, err := g.Leader(ctx)
	if err != nil {
		return nil, err
	}
	status, err := g.Status(ctx, leader)
	if err != nil {
		return nil, err
	}
	for _, n := range status.GetNamespaces() {
		if n.GetName() == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("namespace %q does not exist", name)
}

// Usage is the CPU time of a process in seconds, and its resident memory in bytes.
type Usage struct{ CPU, Memory float64 }

// UsageOf returns the usage of a process.
func UsageOf(pid int) (Usage, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, err
	}
	stat, err := p.Stat()
	return Usage{stat.CPUTime(), float64(stat.ResidentMemory())}, err
}

// StoreLeads reports whether the embedded store of a manager is the store's leader, from its
// metrics.
func StoreLeads(ctx context.Context, m *Manager) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.Member.HTTP+"/metrics", nil)
	if err != nil {
		return false, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	metrics, err := io.ReadAll(response.Body)
	return bytes.Contains(metrics, []byte("\netcd_server_is_leader 1\n")), err
}

// Close ends all managers.
func (g *Managers) Close() {
	if g.Managers != nil {
		g.Managers.Close()
	}
	_ = os.RemoveAll(g.dir)
}
