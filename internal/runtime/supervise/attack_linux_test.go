package supervise

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// ownServer returns a server whose process is this one, or one that does not exist.
func ownServer(t *testing.T, pid int) (s *Server, inherited int) {
	t.Helper()
	s, err := NewServer(func() uint64 { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if inherited, err = syscall.Dup(int(s.Socket().Fd())); err != nil {
		t.Fatal(err)
	}
	s.Serve(pid)
	return s, inherited
}

// dial connects as the library does.
func dial(t *testing.T, inherited int) (*Client, error) {
	t.Helper()
	value, err := describe(inherited, inherited)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(value)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func someSession() *Session {
	return &Session{Namespace: "presence", Owner: "a", ID: leasehold.Session{1}, Managers: []string{"127.0.0.1:1"}}
}

// Invalid packets on the inherited socket do not end the server.
func TestInvalidHellos(t *testing.T) {
	s, inherited := ownServer(t, os.Getpid())
	for _, packet := range []string{"", "{", `{"version":9}`, strings.Repeat("x", maxMessage)} {
		if err := syscall.Sendmsg(inherited, []byte(packet), nil, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	c, err := dial(t, inherited)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Register(someSession()); err != nil || len(s.End()) != 1 {
		t.Errorf("registered: %v", err)
	}
}

// The process ID of each message counts, not that of the connection.
func TestSenderOfEachMessage(t *testing.T) {
	s, inherited := ownServer(t, os.Getpid())
	c, err := dial(t, inherited)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.pid++
	s.mu.Unlock()
	if _, err := c.Register(someSession()); err == nil || !strings.Contains(err.Error(), "is not the direct child") {
		t.Errorf("another process registered: %v", err)
	}
	if err := c.Leave(someSession()); err == nil {
		t.Error("another process left")
	}
}

func TestInvalidRequests(t *testing.T) {
	s, inherited := ownServer(t, os.Getpid())
	c, err := dial(t, inherited)
	if err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]func() (*reply, error){
		"unknown operation": func() (*reply, error) { return c.call("kill", someSession()) },
		"has no session":    func() (*reply, error) { return c.call(opRegister, nil) },
		"0 managers":        func() (*reply, error) { return c.call(opRegister, &Session{Namespace: "a", Owner: "b"}) },
	} {
		if _, err := r(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	s.End()
	if _, err := c.Register(someSession()); err == nil {
		t.Error("registered after the end of the process")
	}
	long := someSession()
	long.Owner = leasehold.OwnerID(strings.Repeat("x", maxMessage))
	if _, err := c.Register(long); err == nil {
		t.Error("a message that is too long was accepted")
	}
}

// A process has a bounded number of connections, and frees them when it closes them.
func TestConnectionsAreBounded(t *testing.T) {
	s, inherited := ownServer(t, os.Getpid())
	var open []*Client
	for range maxConns {
		fd, err := syscall.Dup(inherited)
		if err != nil {
			t.Fatal(err)
		}
		c, err := dial(t, fd)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	if _, err := dial(t, inherited); err == nil || !strings.Contains(err.Error(), "needs one") {
		t.Errorf("connection %d: %v", maxConns+1, err)
	}
	for _, c := range open {
		_ = c.Close()
	}
	s.Close()
	if len(s.conns) != 0 {
		t.Errorf("%d connections are left", len(s.conns))
	}
}

// Sessions that were registered before a suspend of the computer are dropped.
func TestSuspend(t *testing.T) {
	s, inherited := ownServer(t, os.Getpid())
	c, err := dial(t, inherited)
	if err != nil {
		t.Fatal(err)
	}
	later := someSession()
	later.Namespace = "sessions"
	for epoch, session := range []*Session{someSession(), later} {
		s.mu.Lock()
		s.epoch = func() uint64 { return uint64(epoch) }
		s.mu.Unlock()
		if _, err := c.Register(session); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.sessions); n != 1 {
		t.Errorf("%d sessions are kept", n)
	}
	if deaths := s.End(); len(deaths) != 1 || deaths[0].Namespace != "sessions" {
		t.Errorf("the end of %+v is reported", deaths)
	}
}

// A supervisor that hangs has not ended.
func TestConnectionErrors(t *testing.T) {
	for err, want := range map[error]string{syscall.EPIPE: "has ended", io.EOF: "has ended", os.ErrDeadlineExceeded: "does not reply", syscall.EAGAIN: "does not reply"} {
		if got := connError(err); !strings.Contains(got.Error(), want) || !errors.Is(got, err) {
			t.Errorf("%v: %v, want %q", err, got, want)
		}
	}
}
