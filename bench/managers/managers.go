// Package managers runs the real thing: processes of "leasehold manager", built
// from this tree, with their stores embedded.
package managers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/bench/kit"
	"github.com/leasehold-dev/leasehold/internal/child"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Group is one manager, or several that survive the loss of one.
type Group struct {
	All []*Manager

	dir   string
	conns []*grpc.ClientConn
}

// A Manager is a process.
type Manager struct {
	child.Child
	Addr  string // for clients
	http  string
	debug string // where it can be profiled
	admin leaseholdv1.AdminServiceClient
}

// patience is for processes that start while others need the processors.
const patience = 2 * time.Minute

// Start starts n managers, which have a leader when it returns. It builds the command,
// unless [kit.CommandVariable] says where it is.
func Start(ctx context.Context, n int) (g *Group, err error) {
	g = &Group{}
	defer func() {
		if err != nil {
			g.Close()
			g = nil
		}
	}()
	if g.dir, err = os.MkdirTemp("", "bench-managers-"); err != nil {
		return g, err
	}
	program := os.Getenv(kit.CommandVariable)
	if program == "" {
		program = filepath.Join(g.dir, "leasehold")
		if err := build(ctx, program); err != nil {
			return g, err
		}
	}
	if err := g.prepare(program, n); err != nil {
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

// build builds the command.
func build(ctx context.Context, to string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", to, "./cmd/leasehold")
	build.Dir = ".."
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the command; run this in the directory bench: %w: %s", err, bytes.TrimSpace(text))
	}
	return nil
}

// prepare gives everyone a name, ports and arguments.
func (g *Group) prepare(program string, n int) error {
	ports, err := child.FreePorts(4 * n)
	if err != nil {
		return err
	}
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf("m%d=%s", i+1, ports[4*i+3]))
	}
	for i := range n {
		name := fmt.Sprintf("m%d", i+1)
		m := &Manager{Addr: ports[4*i], http: ports[4*i+1], debug: ports[4*i+2]}
		args := []string{
			"manager", "--listen", m.Addr, "--http", m.http, "--debug-listen", m.debug,
			"--name", name, "--data-dir", filepath.Join(g.dir, name), "--log-level", "error",
		}
		if n > 1 {
			args = append(args, "--members", strings.Join(members, ","))
		}
		m.Child = child.Child{
			Name: name, Ended: func(err error) { fmt.Fprintln(os.Stderr, err) },
			Launch: child.Launch{Program: program, Args: args, Log: filepath.Join(g.dir, name+".log")},
		}
		conn, err := grpc.NewClient("passthrough:///"+m.Addr, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		if err != nil {
			return err
		}
		g.conns = append(g.conns, conn)
		m.admin = leaseholdv1.NewAdminServiceClient(conn)
		g.All = append(g.All, m)
	}
	return nil
}

// Addrs returns where clients find them.
func (g *Group) Addrs() (all []string) {
	for _, m := range g.All {
		all = append(all, m.Addr)
	}
	return all
}

// Leader waits until somebody leads, as the manager says that is asked.
func (g *Group) Leader(ctx context.Context) (leader *Manager, err error) {
	err = Until(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		var failures error
		for _, m := range g.All {
			if m.Life() == 0 {
				continue
			}
			status, err := m.Status(ctx)
			if err != nil {
				failures = errors.Join(failures, err)
				continue
			}
			for _, l := range g.All {
				if l.Addr == status.GetLeader() && l.Life() > 0 && status.GetProblem() == "" {
					leader = l
					return nil
				}
			}
		}
		return errors.Join(errors.New("nobody leads"), failures)
	})
	return leader, err
}

// Create makes a namespace. Zero fields of it have their defaults.
func (m *Manager) Create(ctx context.Context, config *leaseholdv1.NamespaceConfig) error {
	return Until(ctx, 100*time.Millisecond, func(ctx context.Context) error { return m.TryCreate(ctx, config, patience) })
}

// TryCreate is Create, tried once. It succeeds if the namespace is there, since an
// attempt before may have made it and not have been answered.
func (m *Manager) TryCreate(ctx context.Context, config *leaseholdv1.NamespaceConfig, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := m.admin.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config})
	if err = wire.ToError(err); leasehold.KindOf(err) == leasehold.Exists {
		return nil
	}
	return err
}

// Status asks the manager how it is.
func (m *Manager) Status(ctx context.Context) (*leaseholdv1.GetStatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return m.admin.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
}

// Namespace returns how a namespace is.
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

// Until tries again and again, for two minutes.
func Until(ctx context.Context, every time.Duration, so func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := so(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(every):
		}
	}
}

// Close ends all of it.
func (g *Group) Close() {
	for _, c := range g.conns {
		_ = c.Close()
	}
	for _, m := range g.All {
		m.Close()
	}
	_ = os.RemoveAll(g.dir)
}
