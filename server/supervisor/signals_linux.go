package supervisor

import (
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forwarded returns the signals that another process sends to the supervisor and means for the child. Not
// included are signals that cannot be caught, those by which the kernel reports an error or a state of the
// supervisor itself, and those that were ignored when it was started, as nohup does: the child ignores them.
func forwarded() (signals []os.Signal) {
	all := []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
		syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP, syscall.SIGABRT, syscall.SIGIO, syscall.SIGPWR,
	}
	for s := syscall.Signal(firstRealTime); s <= lastRealTime; s++ {
		all = append(all, s)
	}
	for _, s := range all {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}

// Real-time signals, without those that the C library uses.
const (
	firstRealTime = 35
	lastRealTime  = 64
)

// forward forwards signals until done is closed. When the child has ended, a signal that asks the supervisor to
// end shortens the wait for managers, and a second one ends it.
func (s *supervisor) forward(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case received := <-s.signals:
			s.send(received.(syscall.Signal)) //nolint:errcheck,forcetypeassert // os/signal has no others here
		}
	}
}

func (s *supervisor) send(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.gone && sig == syscall.SIGCONT:
		s.tty.resume(s.pid)
	case !s.gone:
		_ = syscall.Kill(s.pid, sig) // an error: the child has other privileges
	case sig == syscall.SIGTERM || sig == syscall.SIGINT || sig == syscall.SIGQUIT || sig == syscall.SIGHUP:
		s.hurry()
	}
}

// hurryTimeout bounds the notices after a signal. The signal may have the same cause as the end of the child, for
// example a closed terminal, and a notice usually takes a few milliseconds.
const hurryTimeout = 250 * time.Millisecond

// hurry shortens the wait for acknowledgements, or ends it at the second call. s.mu is held.
func (s *supervisor) hurry() {
	if s.hurried {
		s.cancel()
		return
	}
	s.hurried = true
	time.AfterFunc(hurryTimeout, s.cancel)
}

// Die ends this process by the signal that ended the child, so that the parent detects it. It returns if
// that is impossible: no signal ends the first process of a container.
func (e Exit) Die() {
	if e.Signal == 0 || os.Getpid() == 1 {
		return
	}
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // the child has written a core dump
	// The Go runtime replaces the default action of some signals by a stack trace.
	var action [64]byte // a sigaction with SIG_DFL, which is 0, and an empty mask
	const maskBytes = 8
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(e.Signal), uintptr(unsafe.Pointer(&action)), 0, maskBytes, 0, 0) //nolint:gosec // the kernel reads it only
	_ = syscall.Kill(os.Getpid(), e.Signal)
	time.Sleep(time.Second) // another thread receives the signal
}
