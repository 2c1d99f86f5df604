package supervisor

import (
	"errors"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An event is the end or a stop of a child.
type event struct {
	pid    int
	exited bool
	signal syscall.Signal // that stopped it
}

// nextEvent waits until a child has ended or stopped, and leaves the event in place: a child that has ended
// remains a zombie.
func nextEvent() (event, error) {
	info, err := waitid(unix.P_ALL, 0, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT)
	pid, status := sender(info)
	exited := info.Code == cldExited || info.Code == cldKilled || info.Code == cldDumped
	return event{pid, exited, syscall.Signal(status)}, err
}

// take removes a stop, and reports false if there is none any more. It never reaps a child, which may have been
// killed since.
func (e event) take() bool {
	info, err := waitid(unix.P_PID, e.pid, unix.WSTOPPED|unix.WNOHANG)
	pid, _ := sender(info)
	return err == nil && pid == e.pid
}

// reap removes a child that has ended.
func reap(pid int) (Exit, error) {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil && status.Signaled():
			return Exit{Signal: status.Signal()}, nil
		default:
			return Exit{Code: status.ExitStatus()}, err
		}
	}
}

func waitid(kind, id, options int) (*unix.Siginfo, error) {
	for {
		var info unix.Siginfo
		if err := unix.Waitid(kind, id, &info, options, nil); !errors.Is(err, unix.EINTR) {
			return &info, err
		}
	}
}

// The values of si_code that mean the end of a process.
const (
	cldExited = 1
	cldKilled = 2
	cldDumped = 3
)

// sender returns si_pid and si_status. They are the first and third number of a union that is aligned like a
// pointer, after three numbers of 32 bits.
func sender(info *unix.Siginfo) (pid, status int) {
	const align = unsafe.Sizeof(uintptr(0))
	const offset = (3*4 + align - 1) / align * align
	union := (*[3]int32)(unsafe.Add(unsafe.Pointer(info), offset)) //nolint:gosec // the layout is that of the kernel
	return int(union[0]), int(union[2])
}
