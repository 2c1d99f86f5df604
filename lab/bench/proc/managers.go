package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// CommandVariable names, in the environment of a benchmark, the built command
// leasehold. lab/bench/all builds it once, before anything is measured.
const CommandVariable = "BENCH_LEASEHOLD"

// Managers is a group of processes of "leasehold manager run", built from this tree, with
// their stores embedded.
type Managers struct {
	All []*Manager

	config ManagersConfig
	dir    string
	conns  []*grpc.ClientConn
}

// ManagersConfig is how managers are started.
type ManagersConfig struct {
	Count       int
	Args        []string                         // in addition
	Credentials credentials.TransportCredentials // of the operator; nil for plain text
}

// A Manager is one process of them.
type Manager struct {
	proc.Process
	Addr  string // for clients
	http  string
	admin leaseholdv1.AdminServiceClient
}

// StartManagers starts a group, which has a leader when it returns. It builds the
// command, unless [CommandVariable] names it.
func StartManagers(ctx context.Context, config ManagersConfig) (g *Managers, err error) {
	g = &Managers{config: config}
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
	if err := g.prepare(program); err != nil {
		return g, err
	}
	for _, m := range g.All {
		if err := m.Start(); err != nil {
			return g, err
		}
	}
	_, err = g.Leader(ctx)
	return g, err
}

// GoBuild builds as go run does: without debugging information, which takes as long
// to link as all else.
func GoBuild(ctx context.Context, dir, to string, packages ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-ldflags=-s -w", "-o", to}, packages...)...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building, in the directory bench: %w: %s", err, bytes.TrimSpace(text))
	}
	return nil
}

// prepare gives each manager a name, ports and arguments.
func (g *Managers) prepare(program string) error {
	n := g.config.Count
	ports, err := proc.FreePorts(3 * n)
	if err != nil {
		return err
	}
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf("m%d=%s", i+1, ports[3*i+2]))
	}
	for i := range n {
		name := fmt.Sprintf("m%d", i+1)
		m := &Manager{Addr: ports[3*i], http: ports[3*i+1]}
		args := append([]string{
			"manager", "run", "--listen", m.Addr, "--http", m.http,
			"--name", name, "--data-dir", filepath.Join(g.dir, name), "--log-level", "error",
		}, g.config.Args...)
		if n > 1 {
			args = append(args, "--members", strings.Join(members, ","))
		}
		m.Process = proc.Process{
			Name: name, Ended: func(err error) { fmt.Fprintln(os.Stderr, err) },
			Launch: proc.Launch{Program: program, Args: args, Log: filepath.Join(g.dir, name+".log")},
		}
		conn, err := Dial(m.Addr, g.config.Credentials)
		if err != nil {
			return err
		}
		g.conns = append(g.conns, conn)
		m.admin = leaseholdv1.NewAdminServiceClient(conn)
		g.All = append(g.All, m)
	}
	return nil
}

// Dial connects to a manager. No credentials are plain text.
func Dial(addr string, as credentials.TransportCredentials) (*grpc.ClientConn, error) {
	if as == nil {
		as = insecure.NewCredentials()
	}
	return grpc.NewClient("passthrough:///"+addr, append(wire.DialOptions(), grpc.WithTransportCredentials(as))...)
}

// CreateNamespace makes a namespace as soon as the manager leads. It succeeds if the
// namespace exists, since an attempt without a reply may have made it.
func CreateNamespace(ctx context.Context, conn grpc.ClientConnInterface, config *leaseholdv1.NamespaceConfig) error {
	admin := leaseholdv1.NewAdminServiceClient(conn)
	return Until(ctx, 20*time.Millisecond, func(ctx context.Context) error { return create(ctx, admin, config) })
}

func create(ctx context.Context, admin leaseholdv1.AdminServiceClient, config *leaseholdv1.NamespaceConfig) error {
	_, err := admin.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config})
	if err = wire.ToError(err); leasehold.KindOf(err) == leasehold.ErrExists {
		return nil
	}
	return err
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

// Addrs returns the addresses for clients.
func (g *Managers) Addrs() (all []string) {
	for _, m := range g.All {
		all = append(all, m.Addr)
	}
	return all
}

// Leader waits until one of the managers leads.
func (g *Managers) Leader(ctx context.Context) (leader *Manager, err error) {
	err = Until(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		var failures error
		for _, m := range g.All {
			if m.Incarnation() == 0 {
				continue
			}
			status, err := m.Status(ctx)
			if err != nil {
				failures = errors.Join(failures, err)
				continue
			}
			for _, l := range g.All {
				if l.Addr == status.GetLeader() && l.Incarnation() > 0 && status.GetProblem() == "" {
					leader = l
					return nil
				}
			}
		}
		return errors.Join(errors.New("no manager leads"), failures)
	})
	return leader, err
}

// CreateNamespace makes a namespace at the first manager that can, within a second
// for each attempt.
func (g *Managers) CreateNamespace(ctx context.Context, config *leaseholdv1.NamespaceConfig) error {
	return Until(ctx, 10*time.Millisecond, func(ctx context.Context) error {
		failure := errors.New("no manager lives")
		for _, m := range g.All {
			if m.Incarnation() == 0 {
				continue
			}
			attempt, cancel := context.WithTimeout(ctx, time.Second)
			failure = create(attempt, m.admin, config)
			cancel()
			if failure == nil {
				return nil
			}
		}
		return failure
	})
}

// Status returns the manager's status.
func (m *Manager) Status(ctx context.Context) (*leaseholdv1.GetStatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return m.admin.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
}

// Namespace returns the status of a namespace.
func (m *Manager) Namespace(ctx context.Context, name string) (*leaseholdv1.NamespaceStatus, error) {
	status, err := m.Status(ctx)
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

// Usage returns that of the manager.
func (m *Manager) Usage() (Usage, error) {
	p, err := procfs.NewProc(m.Pid())
	if err != nil {
		return Usage{}, err
	}
	stat, err := p.Stat()
	return Usage{stat.CPUTime(), float64(stat.ResidentMemory())}, err
}

// StoreLeads reports whether its store leads those of the group, from its metrics.
func (m *Manager) StoreLeads(ctx context.Context) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.http+"/metrics", nil)
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
	for _, c := range g.conns {
		_ = c.Close()
	}
	for _, m := range g.All {
		m.Close()
	}
	_ = os.RemoveAll(g.dir)
}
