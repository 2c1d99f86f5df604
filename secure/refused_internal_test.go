package secure

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A broken connection breaks on writing, and may have something to say.
type broken struct {
	net.Conn
	said error
}

func (b broken) Write([]byte) (int, error)       { return 0, syscall.EPIPE }
func (b broken) Read([]byte) (int, error)        { return 0, b.said }
func (b broken) SetReadDeadline(time.Time) error { return nil }

// TestAlertIsHeard: a client that was refused while it wrote learns that it was refused.
func TestAlertIsHeard(t *testing.T) {
	alert := &net.OpError{Op: "remote error", Err: errors.New("tls: unknown certificate authority")}
	const want = "the server refuses our certificate, or that we show none; its log says why: remote error: tls: unknown certificate authority"
	for _, test := range []struct {
		said error
		want string
	}{{alert, want}, {syscall.ECONNRESET, syscall.EPIPE.Error()}, {nil, syscall.EPIPE.Error()}} {
		if _, err := (hearing{broken{said: test.said}}).Write(nil); err == nil || err.Error() != test.want {
			t.Errorf("after %v: %v, want %q", test.said, err, test.want)
		}
	}
	if _, err := (hearing{broken{said: alert}}).Read(nil); err == nil || !strings.HasPrefix(err.Error(), "the server refuses") {
		t.Errorf("reading: %v", err)
	}
	if _, err := (hearing{broken{said: syscall.ECONNRESET}}).Read(nil); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reading: %v", err)
	}
}
