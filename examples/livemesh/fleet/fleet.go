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
	"sync"
	"time"

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

// A Process is a server or a frontend.
type Process struct {
	proc.Process
	service leasehold.Namespace // "" for frontends
	ready   chan struct{}       // closed when the process has printed a line
}

// A Fleet is a set of processes. It is not safe for concurrent use.
type Fleet struct {
	program, dir       string
	managers           *proc.Managers
	servers, frontends []*Process

	Managers  []string   // their addresses
	Frontends []string   // their URLs
	Failed    chan error // receives the error of a process that has ended unexpectedly
}

// Start starts a fleet of a program, which is livemesh itself, and waits until all processes
// are ready. The services are namespaces with the names of commands. The logs are written to
// the directory.
func Start(ctx context.Context, program, dir string, services []leasehold.Namespace) (*Fleet, error) {
	f := &Fleet{program: program, dir: dir, Failed: make(chan error, 1)}
	longest := lease * 13 / 10 // with the default drift of a namespace
	managers, err := proc.NewManagers(proc.ManagersConfig{
		Program: program, Command: "manager", Dir: dir, Count: managerCount, Diskless: true, Ended: f.fail,
		Flags: func(proc.Member) []string { return []string{"--longest-lease", longest.String(), "--child"} },
	})
	if err != nil {
		return nil, err
	}
	f.managers, f.Managers = managers, managers.Addrs()
	if err = f.prepare(services); err == nil {
		err = f.start(ctx, services)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// prepare creates all servers and frontends.
func (f *Fleet) prepare(services []leasehold.Namespace) error {
	addrs, err := proc.FreePorts(pair)
	if err != nil {
		return err
	}
	for i, addr := range addrs {
		f.Frontends = append(f.Frontends, "http://"+addr)
		f.frontends = append(f.frontends, f.process(fmt.Sprint("frontend-", i+1), "", "frontend", "--listen", addr))
		for _, space := range services {
			name := fmt.Sprintf("%s-%d", space, i+1)
			f.servers = append(f.servers, f.process(name, space, string(space), "--name", name))
		}
	}
	return nil
}

func (f *Fleet) process(name string, service leasehold.Namespace, args ...string) *Process {
	for _, addr := range f.Managers {
		args = append(args, "--managers", addr)
	}
	p := &Process{service: service}
	p.Name, p.Ended = name, f.fail
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

func (f *Fleet) fail(err error) {
	select {
	case f.Failed <- err:
	default: // another error is pending
	}
}

// start starts all processes, and waits until they are ready.
func (f *Fleet) start(ctx context.Context, services []leasehold.Namespace) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := f.managers.Start(ctx); err != nil {
		return err
	}
	for _, space := range services {
		err := proc.Until(ctx, func(ctx context.Context) error {
			_, err := f.managers.CreateNamespace(ctx, &leaseholdv1.NamespaceConfig{
				Name: string(space), Timing: &leaseholdv1.Timing{Lease: int64(lease), Renew: int64(lease / 4)},
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	return f.Revive(ctx, slices.Concat(f.servers, f.frontends)...)
}

// Revive starts processes that do not run, and waits until they are ready.
func (f *Fleet) Revive(ctx context.Context, processes ...*Process) error {
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

// Close kills all processes.
func (f *Fleet) Close() {
	var closing sync.WaitGroup
	for _, p := range slices.Concat(f.servers, f.frontends) {
		closing.Go(p.Close)
	}
	closing.Go(f.managers.Close)
	closing.Wait()
}

// Servers returns the servers of a service.
func (f *Fleet) Servers(of leasehold.Namespace) []*Process {
	return slices.DeleteFunc(slices.Clone(f.servers), func(p *Process) bool { return p.service != of })
}

// Strike injects a random fault, and returns its description when the process runs again.
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
		return victim.Name + " was restarted", f.Revive(ctx, victim)
	case n == 3:
		m := f.managers.All[random.IntN(managerCount)]
		m.Kill()
		proc.Pause(ctx, upTo(random, longest))
		return "manager " + m.Name + " was killed", m.Start()
	case n == 4:
		victim, longest = f.frontends[random.IntN(pair)], time.Second
	}
	victim.Kill()
	proc.Pause(ctx, upTo(random, longest))
	return victim.Name + " was killed", f.Revive(ctx, victim)
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
	proc.Pause(ctx, d)
	return fmt.Sprintf("%s was stopped %s, and went on", p.Name, how), p.Resume()
}

func upTo(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}
