// Package fleet runs all of Live Mesh as processes of this computer: managers, two or more
// servers of each service, and frontends. The demo watches them being killed, and tests hold
// what devices see meanwhile against what was promised.
package fleet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/child"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Config says what a fleet is made of.
type Config struct {
	// Program is livemesh itself, and Dir where what the processes say is kept.
	Program, Dir string
	// Services are the namespaces, whose names are those of the commands.
	Services []leasehold.Namespace
	// Servers are how many each service has; Managers and Frontends how many there are.
	Servers, Managers, Frontends int
	// Lease is how long a server's lease lasts. Default 3 s, so that one sees something.
	Lease time.Duration
}

// A Process is one of a fleet.
type Process struct {
	child.Child
	Service leasehold.Namespace // "" for managers and frontends
	said    chan struct{}       // something, when it was ready
}

// A Fleet is its processes. It is for one goroutine.
type Fleet struct {
	cfg       Config
	managers  []*Process
	frontends []*Process
	servers   []*Process
	addrs     []string // of the managers
	urls      []string // of the frontends
	failed    chan error
}

const patience = time.Minute

// Start starts a fleet, and returns when all its processes are ready.
func Start(ctx context.Context, cfg Config) (*Fleet, error) {
	if cfg.Lease == 0 {
		cfg.Lease = 3 * time.Second
	}
	addrs, err := child.FreePorts(cfg.Managers + cfg.Frontends)
	if err != nil {
		return nil, err
	}
	f := &Fleet{cfg: cfg, addrs: addrs[:cfg.Managers], failed: make(chan error, 1)}
	group := strings.Join(f.addrs, ",")
	longest := cfg.Lease * 13 / 10 // with the drift that a namespace usually has
	for i, addr := range f.addrs {
		f.managers = append(f.managers, f.process(fmt.Sprint("manager-", i+1), "", "manager", "--listen", addr, "--peers", group, "--longest", longest.String()))
	}
	for _, space := range cfg.Services {
		for i := range cfg.Servers {
			name := fmt.Sprintf("%s-%d", space, i+1)
			f.servers = append(f.servers, f.process(name, space, string(space), "--name", name, "--managers", group))
		}
	}
	for i, addr := range addrs[cfg.Managers:] {
		f.urls = append(f.urls, "http://"+addr)
		f.frontends = append(f.frontends, f.process(fmt.Sprint("frontend-", i+1), "", "frontend", "--listen", addr, "--managers", group))
	}
	if err := f.start(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Fleet) process(name string, space leasehold.Namespace, args ...string) *Process {
	p := &Process{Service: space, said: make(chan struct{}, 1)}
	p.Name, p.Ended = name, f.fail
	p.Launch = child.Launch{
		Program: f.cfg.Program, Args: append(args, "--child"), Log: filepath.Join(f.cfg.Dir, name+".log"),
		Output: func(r io.Reader) error {
			lines := bufio.NewScanner(r)
			for lines.Scan() {
				select {
				case p.said <- struct{}{}:
				default:
				}
			}
			return lines.Err()
		},
	}
	return p
}

func (f *Fleet) fail(err error) {
	select {
	case f.failed <- err:
	default: // it is known already that something is wrong
	}
}

// Failed tells of a process that has ended though nobody killed it.
func (f *Fleet) Failed() <-chan error { return f.failed }

func (f *Fleet) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return f.startAll(ctx, f.managers) },
		f.createNamespaces,
		func(ctx context.Context) error { return f.startAll(ctx, f.servers) },
		func(ctx context.Context) error { return f.startAll(ctx, f.frontends) },
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) startAll(ctx context.Context, processes []*Process) error {
	for _, p := range processes {
		if err := p.Start(); err != nil {
			return err
		}
	}
	for _, p := range processes {
		if err := f.ready(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until a process says that it is.
func (f *Fleet) ready(ctx context.Context, p *Process) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-p.said:
		return nil
	case err := <-f.failed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("waiting for %s: %w; %s", p.Name, context.Cause(ctx), child.Tail(p.Launch.Log))
	}
}

// createNamespaces asks the managers, one after the other, until one of them leads.
func (f *Fleet) createNamespaces(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, space := range f.cfg.Services {
		for i := 0; ; i++ {
			err := f.createNamespace(ctx, f.addrs[i%len(f.addrs)], space)
			if err == nil || errors.Is(err, leasehold.Exists) {
				break
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("creating namespace %s: %w", space, err)
			}
		}
	}
	return nil
}

func (f *Fleet) createNamespace(ctx context.Context, addr string, space leasehold.Namespace) error {
	conn, err := grpc.NewClient("passthrough:///"+addr, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is under way
	_, err = leaseholdv1.NewAdminServiceClient(conn).CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{
		Version: wire.Version,
		Namespace: &leaseholdv1.NamespaceConfig{
			Name: string(space), Timing: &leaseholdv1.Timing{Lease: int64(f.cfg.Lease), Renew: int64(f.cfg.Lease / 4)},
		},
	})
	return wire.ToError(err)
}

// Frontends are where the frontends are.
func (f *Fleet) Frontends() []string { return f.urls }

// Managers are where the managers are.
func (f *Fleet) Managers() []string { return f.addrs }

// Servers are those of a service.
func (f *Fleet) Servers(space leasehold.Namespace) (found []*Process) {
	for _, p := range f.servers {
		if p.Service == space {
			found = append(found, p)
		}
	}
	return found
}

// Close ends all processes.
func (f *Fleet) Close() {
	for _, all := range [][]*Process{f.frontends, f.servers, f.managers} {
		for _, p := range all {
			p.Close()
		}
	}
}
