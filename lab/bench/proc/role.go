package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

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
		server.ServeCodec(jsonrpc.NewServerCodec(stdio{os.Stdin, os.Stdout, os.Stdout}))
	}()
	select {
	case <-served:
	case <-ctx.Done():
	}
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

// CPU returns the CPU time of the process.
func (*Control) CPU(_ struct{}, used *time.Duration) error {
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

// A Usage is the CPU time of a process, and its resident memory in bytes.
type Usage struct {
	CPU    time.Duration
	Memory float64
}

// UsageOf returns the usage of a process.
func UsageOf(pid int) (Usage, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, err
	}
	stat, err := p.Stat()
	return Usage{time.Duration(stat.CPUTime() * float64(time.Second)), float64(stat.ResidentMemory())}, err
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

// Pause waits, or returns the cause of the context's end.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Patience is the timeout of [Until].
const Patience = 2 * time.Minute

// Until retries a function until it succeeds, for two minutes.
func Until(ctx context.Context, every time.Duration, so func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
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
