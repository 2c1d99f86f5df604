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
	"syscall"
	"time"
)

// A Member is what a process does in its role. The parent can call its exported
// methods that have the form of net/rpc.
type Member interface {
	// Close ends what the member started, and waits for it.
	Close() error
}

// A Role starts a member from its configuration.
type Role func(ctx context.Context, config []byte) (Member, error)

// RoleOf returns the role of a start function with a typed configuration.
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

// Play runs a role if the command line of this process names one: then it does not
// return. A main function, or that of a test, begins with it.
func Play(roles map[string]Role) {
	if len(os.Args) != 3 || roles[os.Args[1]] == nil {
		return
	}
	// An interrupt reaches the whole process group. The parent decides about it.
	signal.Ignore(os.Interrupt)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := play(ctx, roles[os.Args[1]], []byte(os.Args[2]))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// play serves calls until standard input ends, or a signal asks to end.
func play(ctx context.Context, role Role, config []byte) error {
	server := rpc.NewServer()
	member, err := role(ctx, config)
	if err := server.RegisterName("Control", &Control{member, err}); err != nil {
		return err
	}
	if err == nil {
		_ = server.RegisterName("Member", member) // an error means that it has no methods
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

// Control is the service that every process has. It is exported for net/rpc.
type Control struct {
	member Member
	failed error
}

// Ready returns the member's address, if it has one, or why it could not be started.
func (c *Control) Ready(_ struct{}, addr *string) error {
	if m, ok := c.member.(interface{ Addr() string }); ok {
		*addr = m.Addr()
	}
	return c.failed
}

// CPU returns the processor time that the member has used so far.
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

// CPUTime is the processor time that this process has used so far.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Pause waits, or returns why the context has ended.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// patience is how long [Until] tries.
const patience = 2 * time.Minute

// Until calls a function again and again until it succeeds, for two minutes.
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
