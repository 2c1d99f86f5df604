package supervise

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	maxSessions = 256 // sessions of one process; a process that closes its owners properly has a few
	maxConns    = 8   // open connections of one process, which needs one
)

// A registered session is valid in one epoch.
type registered struct {
	Death
	epoch uint64
}

// A Server holds the sessions that one process registers. It is safe for concurrent use.
type Server struct {
	hello   *net.UnixConn
	child   *os.File      // the end that the process inherits; closed by Serve
	epoch   func() uint64 // number of suspends of the computer
	running sync.WaitGroup

	mu       sync.Mutex
	pid      int // the process; 0 before Serve
	ended    bool
	sessions []registered
	conns    map[*net.UnixConn]bool
}

// NewServer returns a server with a new socket. Close frees it. The epoch changes when the computer has been
// suspended. A copy of a suspended machine has a copy of the tokens, and the end of the process in one copy
// proves nothing about the other: so sessions of an earlier epoch are dropped.
func NewServer(epoch func() uint64) (*Server, error) {
	pair, err := socketPair()
	if err != nil {
		return nil, err
	}
	if err := passCredentials(int(pair[0].Fd())); err != nil {
		return nil, errors.Join(err, pair[0].Close(), pair[1].Close())
	}
	hello, err := unixConn(pair[0])
	if err != nil {
		return nil, errors.Join(err, pair[1].Close())
	}
	return &Server{hello: hello, child: pair[1], epoch: epoch, conns: make(map[*net.UnixConn]bool)}, nil
}

// Socket returns the socket for the process to inherit. Serve closes it here.
func (s *Server) Socket() *os.File { return s.child }

// Environment returns the environment variable for a process that inherits the socket under a number.
func (s *Server) Environment(fd int) (string, error) {
	value, err := describe(int(s.child.Fd()), fd)
	return Variable + "=" + value, err
}

// Serve starts to accept sessions of a process that has been started. Its process ID must not be reused before
// End: the caller must not have waited for the process.
func (s *Server) Serve(pid int) {
	_ = s.child.Close() // the process has it
	s.pid = pid
	s.running.Go(s.acceptHellos)
}

// End ends the server when the process has ended, before it is reaped, and returns the sessions that have
// not left.
func (s *Server) End() (deaths []Death) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for i := range s.sessions {
		if s.sessions[i].epoch == s.epoch() {
			deaths = append(deaths, s.sessions[i].Death)
		}
	}
	return deaths
}

// Close closes all connections and waits for the goroutines.
func (s *Server) Close() {
	s.End()
	_, _ = s.hello.Close(), s.child.Close() // the second is closed after Serve
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close() // ends its goroutine
	}
	s.mu.Unlock()
	s.running.Wait()
}

func (s *Server) acceptHellos() {
	data := make([]byte, maxMessage)
	for {
		m, err := receive(s.hello, data)
		if err != nil {
			return // closed, or no process has the socket
		}
		_, err = m.decode()
		if m.socket == nil {
			continue // nowhere to reply
		}
		conn, invalid := privateConn(m.socket)
		if invalid != nil {
			continue
		}
		if err == nil {
			err = s.admit(conn, m.sender)
		}
		if send(conn, &reply{Version: version, Error: text(err)}) != nil || err != nil {
			s.drop(conn)
			continue
		}
		s.running.Go(func() { s.serve(conn) })
	}
}

// privateConn takes over the socket of a hello.
func privateConn(socket *os.File) (*net.UnixConn, error) {
	if err := passCredentials(int(socket.Fd())); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return unixConn(socket)
}

// admit adds a connection of the process, and refuses others.
func (s *Server) admit(conn *net.UnixConn, sender int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case sender != s.pid:
		return s.notChild(sender)
	case s.ended:
		return errors.New("the process has ended")
	case len(s.conns) >= maxConns:
		return fmt.Errorf("the process has %d connections to its supervisor, and needs one", maxConns)
	}
	s.conns[conn] = true
	return nil
}

func (s *Server) notChild(sender int) error {
	return fmt.Errorf("process %d is not the direct child %d of \"leasehold run\", which cannot detect its end: "+
		"start the server itself with \"leasehold run\", in the foreground, and with exec in a shell script", sender, s.pid)
}

func (s *Server) drop(conn *net.UnixConn) {
	_ = conn.Close() // nothing to flush
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

func (s *Server) serve(conn *net.UnixConn) {
	defer s.drop(conn)
	data := make([]byte, maxMessage)
	for {
		m, err := receive(conn, data)
		if err != nil || m.socket != nil {
			m.close()
			return
		}
		answer := &reply{Version: version}
		r, err := m.decode()
		if err == nil {
			answer.Seq = r.Seq
			answer.Hash, err = s.handle(&r, m.sender)
		}
		answer.Error = text(err)
		if send(conn, answer) != nil {
			return
		}
	}
}

// handle runs while the process exists, as a running process or a zombie: so the sender's process ID is not
// reused.
func (s *Server) handle(r *request, sender int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sender != s.pid {
		return nil, s.notChild(sender)
	}
	if s.ended || r.Session == nil {
		return nil, errors.New("the process has ended, or the message has no session")
	}
	switch r.Op {
	case opRegister:
		return s.register(r.Session)
	case opLeave:
		s.sessions = slices.DeleteFunc(s.sessions, func(d registered) bool { return d.is(r.Session) })
		return nil, nil
	}
	return nil, fmt.Errorf("unknown operation %q", r.Op)
}

// register adds a session, and drops those of earlier epochs and, at the limit, the oldest: an owner that was closed
// without an acknowledgement remains registered. s.mu is held.
func (s *Server) register(session *Session) ([]byte, error) {
	if err := session.validate(); err != nil {
		return nil, err
	}
	epoch := s.epoch()
	s.sessions = slices.DeleteFunc(s.sessions, func(d registered) bool { return d.epoch != epoch })
	at := slices.IndexFunc(s.sessions, func(d registered) bool { return d.is(session) })
	if at < 0 {
		if len(s.sessions) >= maxSessions {
			s.sessions = slices.Delete(s.sessions, 0, 1)
		}
		d := registered{Death{Session: *session}, epoch}
		_, _ = rand.Read(d.Token[:]) // never fails
		at = len(s.sessions)
		s.sessions = append(s.sessions, d)
	}
	hash := s.sessions[at].Token.Hash()
	return hash[:], nil
}

// send writes a reply, unless the process does not read.
func send(conn *net.UnixConn, r *reply) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := conn.SetWriteDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	_, err = conn.Write(data)
	return err
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
