package lan

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Available says why there can be no network here; nil if there can.
func Available() error {
	h, err := newHost("trial", netip.AddrFrom4([4]byte{10, 77, 0, 1}))
	if err != nil {
		return err
	}
	h.close()
	return nil
}

// mtu is large, so that there are few packets.
const mtu = 9000

// device is the name of the interface, in each namespace the same.
const device = "lan0"

// settle moves the thread of the calling goroutine into a new namespace with the
// host's address. The thread is spoilt for everything else, and ends with the
// goroutine.
func (h *Host) settle() error {
	runtime.LockOSThread() // and never unlocked
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("making a network namespace: %w; it takes root", err)
	}
	space, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return errors.Join(fmt.Errorf("opening /dev/net/tun: %w", err), space.Close())
	}
	if err := errors.Join(plug(fd), configure(h.Addr)); err != nil {
		return errors.Join(err, unix.Close(fd), space.Close())
	}
	h.device, h.leave = os.NewFile(uintptr(fd), device), space.Close
	h.enter = func() error {
		runtime.LockOSThread()
		return unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
	}
	return nil
}

// plug makes the interface.
func plug(fd int) error {
	request, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return fmt.Errorf("making a TUN device: %w", err)
	}
	return nil
}

// configure gives the interface its address, and has it and the loopback up.
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
