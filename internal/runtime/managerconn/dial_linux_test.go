package managerconn

import (
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// If the first address of a name does not respond, the second one is tried.
func TestSecondAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.3:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // end of the test
	d := net.Dialer{Timeout: 100 * time.Millisecond}
	silent := listenFull(t, [4]byte{127, 0, 0, 2})
	if conn, err := d.Dial("tcp", silent); err == nil {
		_ = conn.Close()
		t.Fatal("the first address accepts connections: the test is void")
	}
	conn, err := dialEach(t.Context(), &d, []string{silent, l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if _, err := dialEach(t.Context(), &d, []string{silent}); err == nil {
		t.Error("no error for the silent address alone")
	}
}

// The system closes a connection whose data stays unacknowledged.
func TestUnackedDataClosesConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // end of the test
	conn, err := connect(t.Context(), net.DefaultResolver, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // end of the test
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); err != nil || got != 1000 {
			t.Errorf("TCP_USER_TIMEOUT is %d ms (%v), want 1 s", got, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// listenFull returns an address whose queue of connections is full: the system drops each SYN.
func listenFull(t *testing.T, ip [4]byte) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: ip}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := (&net.TCPAddr{IP: ip[:], Port: at.(*syscall.SockaddrInet4).Port}).String()
	for range 4 {
		if conn, err := net.DialTimeout("tcp", addr, 100*time.Millisecond); err == nil {
			t.Cleanup(func() { _ = conn.Close() })
		}
	}
	return addr
}

// Names are resolved, addresses are unchanged.
func TestResolve(t *testing.T) {
	for addr, want := range map[string]string{"127.0.0.1:7400": "127.0.0.1:7400", "[::1]:7400": "[::1]:7400", ":7400": ":7400", "no port": "no port"} {
		if got, err := resolve(t.Context(), net.DefaultResolver, addr); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q, %v", addr, got, err)
		}
	}
	if got, err := resolve(t.Context(), net.DefaultResolver, "localhost:7400"); err != nil || len(got) == 0 {
		t.Errorf("localhost: %q, %v", got, err)
	}
}
