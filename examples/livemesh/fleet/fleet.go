// Package fleet runs all of Live Mesh as processes of this machine: three managers, two servers
// of each service, and two frontends. It injects faults for the demo and for tests.
package fleet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
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

// A Process is a process of a fleet.
type Process struct {
	proc.Process
	Service leasehold.Namespace // "" for managers and frontends
	ready   chan struct{}       // closed when the process has printed a line
}

// A Fleet is a set of processes. It is not safe for concurrent use.
type Fleet struct {
	program, dir string

	managers, servers, frontends []*Process
	Managers                     []string   // their addresses
	Frontends                    []string   // their URLs
	Failed                       chan error // receives the error of a process that has ended unexpectedly
}

// Start starts a fleet of a program, which is livemesh itself, and waits until all processes
// are ready. The services are namespaces with the names of commands. The logs are written to
// the directory.
func Start(ctx context.Context, program, dir string, services []leasehold.Namespace) (*Fleet, error) {
	addrs, err := proc.FreePorts(managerCount + pair)
	if err != nil {
		return nil, err
	}
	f := &Fleet{program: program, dir: dir, Managers: addrs[:managerCount], Failed: make(chan error, 1)}
	group := strings.Join(f.Managers, ",")
	longest := lease * 13 / 10 // with the default drift of a namespace
	for i, addr := range f.Managers {
		f.managers = append(f.managers, f.process(fmt.Sprint("manager-", i+1), "", "manager", "--listen", addr, "--peers", group, "--longest", longest.String()))
	}
	for i, addr := range addrs[managerCount:] {
		f.Frontends = append(f.Frontends, "http://"+addr)
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
	p := &Process{Service: space}
	p.Name, p.Ended = name, func(err error) {
		select {
		case f.Failed <- err:
		default: // another error is pending
		}
	}
	p.Launch = proc.Launch{
		Program: f.program, Args: append(args, "--child"), Log: filepath.Join(f.dir, name+".log"),
		Output: func(r io.Reader) error {
			lines := bufio.NewReader(r)
			if _, err := lines.ReadString('\n'); err == nil {
				close(p.ready)
			}
			_, err := io.Copy(io.Discard, lines)
			return err
		},
	}
	return p
}

// start starts processes, and waits until all are ready.
func (f *Fleet) start(ctx context.Context, processes []*Process) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, p := range processes {
		p.ready = make(chan struct{})
		if err := p.Start(); err != nil {
			return err
		}
	}
	for _, p := range processes {
		select {
		case <-p.ready:
		case err := <-f.Failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; %s", p.Name, context.Cause(ctx), proc.Tail(p.Launch.Log))
		}
	}
	return nil
}

// createNamespaces retries until a manager leads.
func (f *Fleet) createNamespaces(ctx context.Context, services []leasehold.Namespace) error {
	group, err := proc.Dial(f.Managers, insecure.NewCredentials(), patience)
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

// Servers returns the servers of a service.
func (f *Fleet) Servers(space leasehold.Namespace) []*Process {
	return slices.DeleteFunc(slices.Clone(f.servers), func(p *Process) bool { return p.Service != space })
}

// Close ends all processes.
func (f *Fleet) Close() {
	for _, p := range slices.Concat(f.frontends, f.servers, f.managers) {
		p.Close()
	}
}

// Strike kills, stops or restarts one process, and waits until all run again. It returns a
// description.
func (f *Fleet) Strike(ctx context.Context, random *rand.Rand) (string, error) {
	victim, longest := f.servers[random.IntN(len(f.servers))], 2*lease
	switch n := random.IntN(7); {
	case n < 2 && proc.CanPause:
		return f.pause(ctx, victim, random)
	case n == 2: // its names are transferred, and nothing is lost
		ending, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := victim.Terminate(ending); err != nil {
			return "", err
		}
		return victim.Name + " was restarted", f.Revive(ctx, victim, 0)
	case n == 3:
		victim = f.managers[random.IntN(len(f.managers))]
	case n == 4:
		victim, longest = f.frontends[random.IntN(len(f.frontends))], time.Second
	}
	return victim.Name + " was killed", f.Revive(ctx, victim, upTo(random, longest))
}

// pause stops a process with SIGSTOP, for less or more than the lease time.
func (f *Fleet) pause(ctx context.Context, p *Process, random *rand.Rand) (string, error) {
	d, how := upTo(random, lease/2), "shortly"
	if random.IntN(2) == 0 {
		d, how = lease+upTo(random, lease), "for longer than its leases last"
	}
	if err := p.Pause(); err != nil {
		return "", err
	}
	waited := wait(ctx, d)
	if err := p.Resume(); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s was stopped %s, and went on", p.Name, how), waited
}

// Revive kills a process, if it is running, and starts it after a delay.
func (f *Fleet) Revive(ctx context.Context, p *Process, after time.Duration) error {
	p.Kill()
	if err := wait(ctx, after); err != nil {
		return err
	}
	return f.start(ctx, []*Process{p})
}

func upTo(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
