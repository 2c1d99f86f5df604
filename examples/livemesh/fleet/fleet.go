// Package fleet runs all of Live Mesh as processes of this computer: three managers, two
// servers of each service, and two frontends. The demo kills some of them, and tests compare
// what devices see meanwhile with what was promised.
package fleet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/proc"
)

const (
	managerCount = 3
	pair         = 2               // servers of each service, and frontends
	lease        = 3 * time.Second // short, so that a kill is soon over
	patience     = time.Minute
)

// A Process is one of a fleet.
type Process struct {
	proc.Process
	Service leasehold.Namespace // "" for managers and frontends
	ready   chan struct{}       // has something when it has printed a line
}

// A Fleet is its processes. It is for one goroutine.
type Fleet struct {
	program, dir string

	managers, servers, frontends []*Process
	addrs, urls                  []string // of managers and frontends
	failed                       chan error
}

// Start starts a fleet of a program, which is livemesh itself, and returns when all processes
// are ready. The services are namespaces whose names are those of commands. The logs are in
// the directory.
func Start(ctx context.Context, program, dir string, services []leasehold.Namespace) (*Fleet, error) {
	addrs, err := proc.FreePorts(managerCount + pair)
	if err != nil {
		return nil, err
	}
	f := &Fleet{program: program, dir: dir, addrs: addrs[:managerCount], failed: make(chan error, 1)}
	group := strings.Join(f.addrs, ",")
	longest := lease * 13 / 10 // with the default drift of a namespace
	for i, addr := range f.addrs {
		f.managers = append(f.managers, f.process(fmt.Sprint("manager-", i+1), "", "manager", "--listen", addr, "--peers", group, "--longest", longest.String()))
	}
	for i, addr := range addrs[managerCount:] {
		f.urls = append(f.urls, "http://"+addr)
		f.frontends = append(f.frontends, f.process(fmt.Sprint("frontend-", i+1), "", "frontend", "--listen", addr, "--managers", group))
		for _, space := range services {
			name := fmt.Sprintf("%s-%d", space, i+1)
			f.servers = append(f.servers, f.process(name, space, string(space), "--name", name, "--managers", group))
		}
	}
	err = f.start(ctx, f.managers)
	if err == nil {
		err = f.createNamespaces(ctx, services)
	}
	if err == nil {
		err = f.start(ctx, slices.Concat(f.servers, f.frontends))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Fleet) process(name string, space leasehold.Namespace, args ...string) *Process {
	p := &Process{Service: space, ready: make(chan struct{}, 1)}
	p.Name, p.Ended = name, func(err error) {
		select {
		case f.failed <- err:
		default: // another has failed
		}
	}
	p.Launch = proc.Launch{
		Program: f.program, Args: append(args, "--child"), Log: filepath.Join(f.dir, name+".log"),
		Output: func(r io.Reader) error {
			lines := bufio.NewScanner(r)
			for lines.Scan() {
				select {
				case p.ready <- struct{}{}:
				default:
				}
			}
			return lines.Err()
		},
	}
	return p
}

// Failed returns the error of a process that has ended by itself.
func (f *Fleet) Failed() <-chan error { return f.failed }

// start starts processes, and waits until all are ready.
func (f *Fleet) start(ctx context.Context, processes []*Process) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, p := range processes {
		select {
		case <-p.ready: // of its last life
		default:
		}
		if err := p.Start(); err != nil {
			return err
		}
	}
	for _, p := range processes {
		select {
		case <-p.ready:
		case err := <-f.failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; %s", p.Name, context.Cause(ctx), proc.Tail(p.Launch.Log))
		}
	}
	return nil
}

// createNamespaces retries until one of the managers is the leader.
func (f *Fleet) createNamespaces(ctx context.Context, services []leasehold.Namespace) error {
	group, err := proc.Dial(f.addrs, insecure.NewCredentials(), patience)
	if err != nil {
		return err
	}
	defer group.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, space := range services {
		err := proc.Until(ctx, func(ctx context.Context) error {
			_, err := group.CreateNamespace(ctx, &leaseholdv1.NamespaceConfig{
				Name: string(space), Timing: &leaseholdv1.Timing{Lease: int64(lease), Renew: int64(lease / 4)},
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("creating namespace %s: %w", space, err)
		}
	}
	return nil
}

// Frontends are the URLs of the frontends.
func (f *Fleet) Frontends() []string { return f.urls }

// Managers are the addresses of the managers.
func (f *Fleet) Managers() []string { return f.addrs }

// Servers are those of a service.
func (f *Fleet) Servers(space leasehold.Namespace) []*Process {
	return slices.DeleteFunc(slices.Clone(f.servers), func(p *Process) bool { return p.Service != space })
}

// Close ends all processes.
func (f *Fleet) Close() {
	for _, p := range slices.Concat(f.frontends, f.servers, f.managers) {
		p.Close()
	}
}
