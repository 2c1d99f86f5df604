package secure

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A broken connection fails on writes, and may have an alert to read.
type broken struct {
	net.Conn
	readErr error
}

func (b broken) Write([]byte) (int, error)       { return 0, syscall.EPIPE }
func (b broken) Read([]byte) (int, error)        { return 0, b.readErr }
func (b broken) SetReadDeadline(time.Time) error { return nil }

// TestFailedWriteReturnsTheAlert: a client that is rejected while it writes gets the alert.
func TestFailedWriteReturnsTheAlert(t *testing.T) {
	alert := &net.OpError{Op: "remote error", Err: errors.New("tls: unknown certificate authority")}
	const want = "the server rejects the client's certificate, or requires one; its log has the reason: remote error: tls: unknown certificate authority"
	for _, test := range []struct {
		readErr error
		want    string
	}{{alert, want}, {syscall.ECONNRESET, syscall.EPIPE.Error()}, {nil, syscall.EPIPE.Error()}} {
		if _, err := (alertConn{broken{readErr: test.readErr}}).Write(nil); err == nil || err.Error() != test.want {
			t.Errorf("after %v: %v, want %q", test.readErr, err, test.want)
		}
	}
	if _, err := (alertConn{broken{readErr: alert}}).Read(nil); err == nil || !strings.HasPrefix(err.Error(), "the server rejects") {
		t.Errorf("reading: %v", err)
	}
	if _, err := (alertConn{broken{readErr: syscall.ECONNRESET}}).Read(nil); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reading: %v", err)
	}
}
