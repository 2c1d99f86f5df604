package etcd

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestResendSoon: TCP retransmits lost data between members within a second, however long the
// preceding outage was.
func TestResendSoon(t *testing.T) {
	var log bytes.Buffer
	p, err := listenPeers(&url.URL{Host: "127.0.0.1:0"}, &EmbedConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	var dialer net.Dialer
	dialed, err := dialer.DialContext(t.Context(), "tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer dialed.Close() //nolint:errcheck // nothing was sent
	accepted, err := p.listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()                                                           //nolint:errcheck // nothing was sent
	conn := reflect.ValueOf(accepted).FieldByName("Conn").Interface().(syscall.Conn) // etcd has wrapped it
	within, err := tcpOption(conn, unix.TCP_RTO_MAX_MS)
	old := errors.Is(err, unix.ENOPROTOOPT)
	if warned := strings.Contains(log.String(), "this system does not bound"); warned != old {
		t.Errorf("option unsupported: %v; log: %s", old, &log)
	}
	if old {
		t.Skip("SKIPPED, NOT TESTED: the retransmission bound requires Linux 6.15")
	}
	if err != nil || within != int(resendWithin.Milliseconds()) {
		t.Errorf("retransmission interval of at most %d ms (%v), want %v", within, err, resendWithin)
	}
	lasts, err := tcpOption(conn, unix.TCP_USER_TIMEOUT)
	if err != nil || lasts != int(resendFor.Milliseconds()) {
		t.Errorf("retransmission for %d ms (%v), want %v", lasts, err, resendFor)
	}
}

// tcpOption returns an option of a connection.
func tcpOption(c syscall.Conn, option int) (value int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) {
		value, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option)
	})
	return value, errors.Join(failed, err)
}
