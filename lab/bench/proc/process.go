// Package proc starts the processes of benchmarks: managers, members of etcd and ZooKeeper, and
// load generators.
//
// Managers are processes of the leasehold command. All others are the benchmark program itself,
// started again with a role on its command line, which [Play] runs. The parent calls their
// methods by JSON-RPC on standard input and output. A process ends when its standard input ends,
// so that none outlives its parent.
package proc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
)

// Timeouts of processes.
const (
	StartLimit = 90 * time.Second // until a process is ready
	CallLimit  = 10 * time.Minute // until a call returns
	EndLimit   = 15 * time.Second // until a process has exited; then it is killed
)

// A Process is this program in a role. It is not safe for concurrent use.
type Process struct {
	Addr string // of its member, if it serves clients

	role   string
	cmd    *exec.Cmd
	in     io.Closer
	client *rpc.Client
	errors *tail
}

// roleVariable is set in processes with a role, so that a program that does not call Play does
// not start itself recursively.
const roleVariable = "LEASEHOLD_BENCH_ROLE"

// Start starts a process in a role, and waits until it is ready. The role and the configuration
// are its arguments.
func Start(ctx context.Context, role string, config any) (*Process, error) {
	g, err := StartGroup(ctx, role, 1, func(int) any { return config })
	if err != nil {
		return nil, err
	}
	return g[0], nil
}

// launch starts a process without waiting until it is ready.
func launch(ctx context.Context, role string, config any) (*Process, error) {
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
	p := &Process{role: role, cmd: exec.CommandContext(ctx, self, append(strings.Fields(role), string(encoded))...), errors: &tail{}}
	p.cmd.Stderr = p.errors
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	// The end of its input lets the process clean up and exit.
	p.cmd.Cancel = in.Close
	p.cmd.WaitDelay = EndLimit
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a %s: %w", role, err)
	}
	p.client = jsonrpc.NewClient(stdio{out, in})
	return p, nil
}

// stdio is the two pipes of a process as a connection.
type stdio struct {
	io.Reader
	io.WriteCloser
}

// Call calls a method of the process's member. Arguments and reply may be nil.
func (p *Process) Call(method string, args, reply any) error {
	return p.call("Member."+method, args, reply, CallLimit)
}

// call kills the process if it does not reply in time.
func (p *Process) call(method string, args, reply any, limit time.Duration) error {
	watchdog := time.AfterFunc(limit, p.Kill)
	defer watchdog.Stop()
	err := p.client.Call(method, args, reply)
	if err == nil {
		return nil
	}
	if text := p.errors.String(); text != "" {
		return fmt.Errorf("%s %d: %w; its last output: %s", p.role, p.cmd.Process.Pid, err, text)
	}
	return fmt.Errorf("%s %d: %w", p.role, p.cmd.Process.Pid, err)
}

// Kill ends the process with SIGKILL. Close must follow.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// End kills the process and waits for it. It may be called again.
func (p *Process) End() {
	p.Kill()
	p.Close()
}

// Terminate sends SIGTERM, and waits until the process has exited.
func (p *Process) Terminate() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.wait()
}

// Close ends the process and waits for it. One that does not end is killed.
func (p *Process) Close() {
	_ = p.in.Close() // fails if the process has ended
	_ = p.wait()     // the exit code does not matter
}

func (p *Process) wait() error {
	watchdog := time.AfterFunc(EndLimit, p.Kill)
	defer watchdog.Stop()
	return p.cmd.Wait()
}

// A Group is several processes in the same role.
type Group []*Process

// StartGroup starts n processes concurrently, and waits until all are ready. After an error
// none runs.
func StartGroup(ctx context.Context, role string, n int, config func(i int) any) (Group, error) {
	var g Group
	for i := range n {
		p, err := launch(ctx, role, config(i))
		if err != nil {
			g.Close()
			return nil, err
		}
		g = append(g, p)
	}
	for _, p := range g {
		if err := p.call("Control.Ready", nil, &p.Addr, StartLimit); err != nil {
			g.Close()
			return nil, err
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

// A Cleanup is a stack of cleanup functions.
type Cleanup []func()

// Add pushes a function.
func (c *Cleanup) Add(end func()) { *c = append(*c, end) }

// Close calls all functions, the last first.
func (c *Cleanup) Close() {
	for _, end := range slices.Backward(*c) {
		end()
	}
	*c = nil
}

// A tail is a writer that keeps the last bytes.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}

// A Member is the service of a process in its role. The parent can call its exported methods
// that have the form of net/rpc.
type Member interface {
	// Close stops the member, and waits for it.
	Close() error
}

// A Role starts a member from an encoded configuration.
type Role func(ctx context.Context, config []byte) (Member, error)

// RoleOf returns a role for a start function with a typed configuration.
func RoleOf[C any, M Member](start func(context.Context, C) (M, error)) Role {
	return func(ctx context.Context, config []byte) (Member, error) {
		var c C
		if err := json.Unmarshal(config, &c); err != nil {
			return nil, fmt.Errorf("configuration of a process: %w", err)
		}
		m, err := start(ctx, c)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
}

// Play runs the role on the command line of this process, and exits. Without a role it returns.
// Every main function and TestMain that starts processes begins with it.
func Play(roles map[string]Role) {
	if len(os.Args) != 3 || roles[os.Args[1]] == nil {
		return
	}
	// The parent handles interrupts, which reach the whole process group.
	signal.Ignore(os.Interrupt)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := Serve(ctx, roles[os.Args[1]], []byte(os.Args[2]))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Serve runs a role until standard input or the context ends.
func Serve(ctx context.Context, role Role, config []byte) error {
	server := rpc.NewServer()
	member, err := role(ctx, config)
	if err := server.RegisterName("Control", &Control{member, err}); err != nil {
		return err
	}
	if err == nil {
		_ = server.RegisterName("Member", member) // fails if it has no methods
		defer func() { _ = member.Close() }()
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.ServeCodec(jsonrpc.NewServerCodec(stdio{os.Stdin, os.Stdout}))
	}()
	select {
	case <-served:
	case <-ctx.Done():
	}
	return nil
}

// A Server is a gRPC server on the loopback, for members to embed.
type Server struct {
	server *grpc.Server
	addr   string
	served chan struct{} // closed when Serve has returned
}

// NewServer starts a server.
func NewServer(s *grpc.Server) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l) // until it is stopped
	}()
	return &Server{s, l.Addr().String(), served}, nil
}

// Addr returns the address for clients.
func (s *Server) Addr() string { return s.addr }

// Close ends the server.
func (s *Server) Close() error {
	s.server.Stop()
	<-s.served
	return nil
}

// Control is the RPC service of every process. It is exported for net/rpc.
type Control struct {
	member Member
	failed error
}

// Ready returns the member's address, if it has one, or the error of its start.
func (c *Control) Ready(_ struct{}, addr *string) error {
	if m, ok := c.member.(interface{ Addr() string }); ok {
		*addr = m.Addr()
	}
	return c.failed
}

// CPU returns the CPU time of the member.
func (c *Control) CPU(_ struct{}, used *time.Duration) (err error) {
	if m, ok := c.member.(interface {
		CPUTime() (time.Duration, error)
	}); ok {
		*used, err = m.CPUTime()
		return err
	}
	*used = CPUTime()
	return nil
}

// CPUTime returns the CPU time of this process.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Pause waits, or returns the cause of the context's end.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// patience is the timeout of [Until].
const patience = 2 * time.Minute

// Until retries a function until it succeeds, for two minutes.
func Until(ctx context.Context, every time.Duration, so func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := so(ctx)
		if err == nil {
			return nil
		}
		if ended := Pause(ctx, every); ended != nil {
			return errors.Join(ended, err)
		}
	}
}
