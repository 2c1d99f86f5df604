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

// CommandVariable names, in the environment of a benchmark, the built command
// leasehold. lab/bench/all builds it once, before anything is measured.
const CommandVariable = "BENCH_LEASEHOLD"

// A Manager is a process of "leasehold manager run".
type Manager = proc.Manager

// Managers is a group of managers, built from this tree, with their stores embedded.
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

// GoBuild builds as go run does: without debugging information, which takes as long
// to link as all else.
func GoBuild(ctx context.Context, dir, to string, packages ...string) error {
	return goBuild(ctx, nil, dir, to, packages...)
}

// GoBuildModule is GoBuild for a module that is not part of the workspace.
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

// CreateNamespace makes a namespace as soon as the manager leads. It succeeds if the
// namespace exists, since an attempt without a reply may have made it.
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

// EverySecond is the policy of n ranges of equal size that are an owner's, with n
// between them that have no owner, so that neighbours do not become one.
func EverySecond(namespace, owner string, n int) *leaseholdv1.NamespaceConfig {
	config := &leaseholdv1.NamespaceConfig{Name: namespace, Policy: "static"}
	size := 1 << 63 / uint64(n)
	for i := range uint64(n) {
		config.Static = append(config.Static,
			&leaseholdv1.StaticSlot{Start: 2 * i * size, Owner: owner}, &leaseholdv1.StaticSlot{Start: (2*i + 1) * size})
	}
	return config
}

// Leader waits until one of the managers leads.
func (g *Managers) Leader(ctx context.Context) (*Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return g.WaitForLeader(ctx)
}

// CreateNamespace makes a namespace at the first manager that can.
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
	return nil, fmt.Errorf("there is no namespace %q", name)
}

// Usage is the seconds of a core that a process has used so far, and its memory in
// bytes.
type Usage struct{ CPU, Memory float64 }

// UsageOf returns that of the process with an id.
func UsageOf(pid int) (Usage, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, err
	}
	stat, err := p.Stat()
	return Usage{stat.CPUTime(), float64(stat.ResidentMemory())}, err
}

// StoreLeads reports whether the store of a manager leads those of the group, from its
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

// Close ends all of them.
func (g *Managers) Close() {
	if g.Managers != nil {
		g.Managers.Close()
	}
	_ = os.RemoveAll(g.dir)
}
