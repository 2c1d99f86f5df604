package lan

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Available returns why there can be no network; nil if there can.
func Available() error {
	h, err := newHost("trial", netip.AddrFrom4([4]byte{10, 77, 0, 1}))
	if err != nil {
		return err
	}
	h.close()
	return nil
}

// mtu is large, to reduce the number of packets.
const mtu = 9000

// device is the name of the interface in each namespace.
const device = "lan0"

// enterNamespace moves the thread of the calling goroutine into a new namespace with the host's address, until
// leave is called. The thread must not end with the goroutine: a process that was started from it with
// a parent death signal would be killed.
func (h *Host) enterNamespace() error {
	runtime.LockOSThread()
	origin, err := os.Open(ownSpace)
	if err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return errors.Join(fmt.Errorf("creating a network namespace: %w; it requires root", err), origin.Close())
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return errors.Join(fmt.Errorf("opening /dev/net/tun: %w; it requires root, or access for all users (chmod 666 /dev/net/tun, as root)", err), goTo(origin), origin.Close())
	}
	space, err := os.Open(ownSpace)
	if err := errors.Join(err, plug(fd), configure(h.Addr)); err != nil {
		return errors.Join(err, unix.Close(fd), goTo(origin), origin.Close())
	}
	h.device = os.NewFile(uintptr(fd), device)
	h.leave = func() error { return errors.Join(goTo(origin), origin.Close(), space.Close()) }
	h.visit = func(do func()) error {
		runtime.LockOSThread()
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			return err
		}
		do()
		return goTo(origin)
	}
	return nil
}

// ownSpace is the network namespace of the calling thread.
const ownSpace = "/proc/thread-self/ns/net"

// goTo moves the thread into a namespace, and unlocks it.
func goTo(space *os.File) error {
	if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("leaving a network namespace: %w", err) // the thread stays locked
	}
	runtime.UnlockOSThread()
	return nil
}

const (
	// resendPath is the maximum retransmission timeout of TCP, since Linux 6.15, and resendsPath the number
	// of retransmissions.
	resendPath  = "/proc/sys/net/ipv4/tcp_rto_max_ms"
	resendsPath = "/proc/sys/net/ipv4/tcp_retries2"
	mostResends = 255
)

// ResendWithin bounds the retransmission timeout of TCP on this host, and maximizes the number of
// retransmissions. The error is [errors.ErrUnsupported] if the system is too old or does not permit it.
func (h *Host) ResendWithin(longest time.Duration) error {
	err := h.Do(func() error {
		if err := set(resendPath, longest.Milliseconds()); err != nil {
			return err
		}
		return set(resendsPath, mostResends)
	})
	for _, cannot := range []error{os.ErrNotExist, os.ErrPermission, unix.EROFS} {
		if errors.Is(err, cannot) {
			return errors.ErrUnsupported
		}
	}
	return err
}

func set(path string, value int64) error {
	return os.WriteFile(path, strconv.AppendInt(nil, value, 10), 0o644) //nolint:gosec // an existing file
}

func plug(fd int) error {
	request, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return fmt.Errorf("creating a TUN device: %w", err)
	}
	return nil
}

// configure sets the address of the interface, and enables it and the loopback.
func configure(addr netip.Addr) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket) //nolint:errcheck // nothing was sent
	order := func(name, what string, call uint, fill func(*unix.Ifreq) error) error {
		request, err := unix.NewIfreq(name)
		if err == nil {
			err = fill(request)
		}
		if err == nil {
			err = unix.IoctlIfreq(socket, call, request)
		}
		if err != nil {
			return fmt.Errorf("setting the %s of %s: %w", what, name, err)
		}
		return nil
	}
	ip := func(a [4]byte) func(*unix.Ifreq) error {
		return func(r *unix.Ifreq) error { return r.SetInet4Addr(a[:]) }
	}
	up := func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }
	return errors.Join(
		order("lo", "state", unix.SIOCSIFFLAGS, up),
		order(device, "address", unix.SIOCSIFADDR, ip(addr.As4())),
		order(device, "mask", unix.SIOCSIFNETMASK, ip([4]byte{255, 255, 255, 0})),
		order(device, "MTU", unix.SIOCSIFMTU, func(r *unix.Ifreq) error { r.SetUint32(mtu); return nil }),
		order(device, "state", unix.SIOCSIFFLAGS, up),
	)
}
