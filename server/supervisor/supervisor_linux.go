package supervisor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/supervise"
)

// Supported reports whether Run works on this system.
const Supported = true

// A supervisor has one child.
type supervisor struct {
	cfg     Config
	server  *supervise.Server
	tty     *terminal // nil without a controlling terminal
	signals chan os.Signal

	cancel context.CancelFunc // ends the wait for acknowledgements

	mu      sync.Mutex
	pid     int  // of the child
	gone    bool // the child has ended, and its process ID may be reused
	hurried bool // a signal has shortened the wait for acknowledgements
}

// Run runs a child, reports its end, and returns how it ended. The error is nil if the child has been
// started.
func Run(ctx context.Context, cfg Config) (Exit, error) {
	c := clock.New()
	suspends := clock.NewDetector(c)
	server, err := supervise.NewServer(func() uint64 { return suspends.Epoch(c.Now()) })
	if err != nil {
		return Exit{}, err
	}
	defer server.Close()
	s := &supervisor{cfg: cfg, server: server, tty: openTerminal(), signals: make(chan os.Signal, 64)}
	defer s.tty.close()
	// Signals that come before the child wait in the channel.
	signal.Notify(s.signals, forwarded()...)
	defer signal.Stop(s.signals)
	if err := s.start(); err != nil {
		return Exit{}, err
	}
	// The child is not a part of the command's context, which the first signal ends: the child decides.
	notices, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s.cancel = cancel
	done := make(chan struct{})
	defer close(done)
	go s.forward(done)
	for _, d := range trimDelays {
		defer time.AfterFunc(d, trim).Stop()
	}
	exit, deaths, err := s.wait()
	s.tty.take(s.pid) // of a process group that has ended
	cfg.report(notices, deaths)
	return exit, err
}

// start starts the child.
func (s *supervisor) start() error {
	path, err := exec.LookPath(s.cfg.Command[0])
	if err != nil {
		return err
	}
	// The child inherits the socket under a number that scripts do not use. The copy is not closed on
	// exec; no other process is started here.
	fd, err := unix.FcntlInt(s.server.Socket().Fd(), unix.F_DUPFD, 100)
	if err != nil {
		return fmt.Errorf("socket for the child: %w", err)
	}
	defer unix.Close(fd) //nolint:errcheck // the child has it
	variable, err := s.server.Environment(fd)
	if err != nil {
		return err
	}
	s.pid, err = syscall.ForkExec(path, s.cfg.Command, &syscall.ProcAttr{
		Env: append(environment(), variable), Files: []uintptr{0, 1, 2}, Sys: s.tty.attributes(),
	})
	if err != nil {
		return &os.PathError{Op: "start", Path: path, Err: err}
	}
	signal.Ignore(syscall.SIGTTOU) // after the start, so that the child does not inherit it
	s.server.Serve(s.pid)
	return nil
}

// environment is ours, without the socket of an outer supervisor.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, supervise.Variable+"=") })
}

// wait waits for all children until the child has ended.
func (s *supervisor) wait() (Exit, []supervise.Death, error) {
	for {
		e, err := nextEvent()
		if err != nil {
			return Exit{}, nil, fmt.Errorf("wait for the child: %w", err)
		}
		if !e.exited {
			s.stopped(e)
			continue
		}
		var deaths []supervise.Death
		if e.pid == s.pid {
			deaths = s.end()
		}
		exit, err := reap(e.pid)
		if err != nil {
			return Exit{}, nil, fmt.Errorf("wait for the child: %w", err)
		}
		if e.pid == s.pid {
			return exit, deaths, nil
		}
	}
}

// stopped handles a stop of a child, unless the child has been continued or has ended since.
func (s *supervisor) stopped(e event) {
	if e.take() && e.pid == s.pid {
		s.tty.childStopped(s.pid, e.signal)
	}
}

// end ends the registration of sessions. The child is a zombie: its process ID cannot be reused yet.
func (s *supervisor) end() []supervise.Death {
	deaths := s.server.End()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	return deaths
}
