// Package managers runs groups of managers, each in a process: this program again, as the
// leasehold command.
package managers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/command/rootcmd"
	process "github.com/leasehold-dev/leasehold/server/proc"
)

const (
	commandName = "leasehold"
	callLimit   = 10 * time.Second // of a call to a manager under load
)

// Play runs the leasehold command if the command line of this process begins with its name, and
// exits. Every main function and TestMain that starts managers calls it first.
func Play() {
	if len(os.Args) > 1 && os.Args[1] == commandName {
		os.Args = os.Args[1:]
		cli.Main(rootcmd.New())
	}
}

// Supervisor is "leasehold run", for processes of the bench.
func Supervisor() ([]string, error) {
	self, err := os.Executable()
	return []string{self, commandName, "run", "--log-level", "error", "--"}, err
}

// A Manager is one process.
type Manager = process.Manager

// A Group is managers in plain text.
type Group struct{ *process.Managers }

// Start starts a group with its data below dir, and waits for its leader. Its store is the etcd
// cluster with the given endpoints, or that of its own members.
func Start(ctx context.Context, dir string, count int, etcd ...string) (*Group, error) {
	return StartWith(ctx, dir, process.ManagersConfig{Count: count, Etcd: etcd})
}

// StartWith is the same with further settings, and with flags of "manager run".
func StartWith(ctx context.Context, dir string, cfg process.ManagersConfig, flags ...string) (g *Group, err error) {
	if cfg.Program, err = os.Executable(); err != nil {
		return nil, err
	}
	if cfg.Dir, err = os.MkdirTemp(dir, "managers-"); err != nil {
		return nil, err
	}
	cfg.Command, cfg.Timeout = commandName+" manager run", callLimit
	cfg.Flags = func(process.Member) []string { return append([]string{"--log-level", "error"}, flags...) }
	cfg.Ended = func(err error) { fmt.Fprintln(os.Stderr, err) }
	all, err := process.NewManagers(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, proc.Patience)
	defer cancel()
	if err := all.Start(ctx); err != nil {
		all.Close()
		return nil, err
	}
	return &Group{all}, nil
}

// Leader waits until a manager leads.
func (g *Group) Leader(ctx context.Context) (*Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, proc.Patience)
	defer cancel()
	return g.WaitForLeader(ctx)
}

// CreateNamespace creates a namespace, and retries until a manager leads.
func (g *Group) CreateNamespace(ctx context.Context, config *leaseholdv1.NamespaceConfig) error {
	return proc.Until(ctx, 10*time.Millisecond, func(ctx context.Context) error {
		_, err := g.Managers.CreateNamespace(ctx, config)
		return err
	})
}

// Status returns the status of a manager.
func (g *Group) Status(ctx context.Context, m *Manager) (status *leaseholdv1.GetStatusResponse, err error) {
	err = g.On(ctx, slices.Index(g.All, m), func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
		status, err = leaseholdv1.NewAdminServiceClient(conn).GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		return err
	})
	return status, err
}

// Namespace returns the status of a namespace at the leader.
func (g *Group) Namespace(ctx context.Context, name string) (*leaseholdv1.NamespaceStatus, error) {
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

// Preset returns the times of a preset.
func Preset(name string) *leaseholdv1.Timing {
	all := admin.Presets()
	p := all[slices.IndexFunc(all, func(p admin.Preset) bool { return p.Name == name })]
	return &leaseholdv1.Timing{Lease: int64(p.Lease), Renew: int64(p.Renew), Drift: p.Drift}
}
