package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold-dev/leasehold/internal/runtime/supervise"
)

// The end of a child that is killed right after it has stopped is not lost.
func TestKilledAfterStop(t *testing.T) {
	server, err := supervise.NewServer(func() uint64 { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	s := &supervisor{server: server}
	if s.pid, err = syscall.ForkExec("/bin/sh", []string{"sh", "-c", "kill -STOP $$"}, &syscall.ProcAttr{Env: os.Environ()}); err != nil {
		t.Fatal(err)
	}
	stop, err := nextEvent()
	if err != nil || stop != (event{pid: s.pid, signal: syscall.SIGSTOP}) {
		t.Fatalf("event %+v of child %d: %v", stop, s.pid, err)
	}
	if err := syscall.Kill(s.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := waitid(unix.P_PID, s.pid, unix.WEXITED|unix.WNOWAIT); err != nil {
		t.Fatal(err)
	}
	s.stopped(stop)
	if exit, _, err := s.wait(); err != nil || exit.Signal != syscall.SIGKILL || !s.gone {
		t.Errorf("exit %+v, ended %v: %v", exit, s.gone, err)
	}
}

// A signal after the end of the child leaves time for a notice. A second one does not.
func TestSignalDuringNotices(t *testing.T) {
	const slow = 100 * time.Millisecond
	for signals, want := range []error{nil, nil, context.Canceled} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &supervisor{gone: true, cancel: cancel}
			var got error
			s.cfg = Config{NoticeTimeout: time.Hour, Logger: slog.New(slog.DiscardHandler), Report: func(ctx context.Context, _ *supervise.Death) (bool, error) {
				for range signals {
					s.send(syscall.SIGTERM)
				}
				select {
				case <-ctx.Done():
					got = ctx.Err()
				case <-time.After(slow):
				}
				return true, got
			}}
			s.cfg.report(ctx, make([]supervise.Death, 1))
			if !errors.Is(got, want) {
				t.Errorf("after %d signals: %v, want %v", signals, got, want)
			}
		})
	}
}
