// Package proc starts the processes of benchmarks: members of etcd, load generators and others.
// Each is the program itself, started again with a role on its command line, which [Play] runs.
// The parent calls its methods by JSON-RPC on standard input and output. A process ends when its
// standard input ends, so that none outlives its parent.
package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	process "github.com/leasehold-dev/leasehold/server/proc"
)

// Timeouts of processes.
const (
	StartLimit = 90 * time.Second // until a process is ready
	CallLimit  = 10 * time.Minute // until a call returns
	EndLimit   = 15 * time.Second // until a terminated process has exited; then it is killed
)

// A Process is this program in a role. It is not safe for concurrent use.
type Process struct {
	Addr string // of its member, if it serves clients

	process process.Process
	client  *rpc.Client
	stop    func() bool // of the AfterFunc that kills it when the context ends
}

// roleVariable is set in processes with a role, so that a program that does not call Play does
// not start itself recursively.
const roleVariable = "BENCH_ROLE"

// Start starts a process in a role, and waits until it is ready. The role and the configuration
// are its arguments. It is killed when the context ends.
func Start(ctx context.Context, role string, config any) (*Process, error) {
	g, err := StartGroup(ctx, role, 1, func(int) any { return config })
	if err != nil {
		return nil, err
	}
	return g[0], nil
}

// launch starts a process without waiting until it is ready.
func launch(ctx context.Context, role string, config any, how How) (*Process, error) {
	if os.Getenv(roleVariable) != "" {
		return nil, errors.New("a process with a role starts others: its main must begin with proc.Play")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program's file: %w", err)
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp("", "bench-*.log")
	if err != nil {
		return nil, err
	}
	_ = log.Close() // it is empty
	replies, output := io.Pipe()
	p := &Process{process: process.Process{Name: role, Launch: process.Launch{
		Program: self, Args: append(strings.Fields(role), string(encoded)), Log: log.Name(), Env: []string{roleVariable + "=" + role},
		Supervisor: how.Supervisor, Where: how.Where,
		Output: func(from io.Reader) error {
			_, err := io.Copy(output, from)
			return errors.Join(err, output.Close())
		},
	}}}
	if err := p.process.Start(); err != nil {
		return nil, errors.Join(err, os.Remove(log.Name()))
	}
	p.client = jsonrpc.NewClient(stdio{replies, p.process.Stdin(), replies})
	p.stop = context.AfterFunc(ctx, p.process.Close)
	return p, nil
}

// stdio is the two pipes of a process as a connection.
type stdio struct {
	io.Reader
	io.Writer
	io.Closer
}

// Call calls a method of the process's member. Arguments and reply may be nil.
func (p *Process) Call(method string, args, reply any) error {
	return p.call("Member."+method, args, reply, CallLimit)
}

// call kills the process if it does not reply in time.
func (p *Process) call(method string, args, reply any, limit time.Duration) error {
	watchdog := time.AfterFunc(limit, p.process.Kill)
	defer watchdog.Stop()
	err := p.client.Call(method, args, reply)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w; %s", p.process.Name, err, process.Tail(p.process.Launch.Log))
}

// Terminate sends SIGTERM, and waits until the process has exited.
func (p *Process) Terminate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, EndLimit)
	defer cancel()
	return p.process.Terminate(ctx)
}

// Kill kills the process, or ends it if it is dead, and waits for it and its supervisor.
func (p *Process) Kill() { p.process.Kill() }

// Freeze stops the process and its supervisor: neither replies, and connections remain.
func (p *Process) Freeze() error {
	return errors.Join(p.process.Pause(), p.process.Signal(syscall.SIGSTOP))
}

// Close kills the process, with its supervisor, and waits for it. It may be called again.
func (p *Process) Close() {
	p.stop()
	p.process.Close()
	_ = p.client.Close()                // it may have ended with the process
	_ = os.Remove(p.process.Launch.Log) // it may have been removed
}

// A Group is several processes in the same role.
type Group []*Process

// StartGroup starts n processes concurrently, and waits until all are ready. After an error
// none runs.
func StartGroup(ctx context.Context, role string, n int, config func(i int) any) (g Group, err error) {
	return StartGroupAs(ctx, role, n, config, How{})
}

// How is how processes are started: each as the child of a supervisor, if there is its command line; and on another host
// of this computer (see [process.Launch]).
type How struct {
	Supervisor []string
	Where      func(start func() error) error
}

// StartGroupAs is StartGroup for other ways to start a process.
func StartGroupAs(ctx context.Context, role string, n int, config func(i int) any, how How) (g Group, err error) {
	defer func() {
		if err != nil {
			g.Close()
			g = nil
		}
	}()
	for i := range n {
		p, err := launch(ctx, role, config(i), how)
		if err != nil {
			return g, err
		}
		g = append(g, p)
	}
	for _, p := range g {
		if err := p.call("Control.Ready", nil, &p.Addr, StartLimit); err != nil {
			return g, err
		}
	}
	return g, nil
}

// CallAll calls a method of all processes at the same time.
func CallAll[R any](g Group, method string, args any) ([]R, error) {
	replies := make([]R, len(g))
	return replies, Each(len(g), func(i int) error { return g[i].Call(method, args, &replies[i]) })
}

// CPU returns the CPU time of all processes.
func (g Group) CPU() (sum time.Duration, err error) {
	for _, p := range g {
		var used time.Duration
		if err := p.call("Control.CPU", nil, &used, CallLimit); err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// Close ends all processes concurrently.
func (g Group) Close() {
	_ = Each(len(g), func(i int) error {
		g[i].Close()
		return nil
	})
}

// Each calls do for 0 to n-1 concurrently, and returns the first error.
func Each(n int, do func(i int) error) error {
	var all errgroup.Group
	for i := range n {
		all.Go(func() error { return do(i) })
	}
	return all.Wait()
}
