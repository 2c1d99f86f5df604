package demo

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A switchboard is the lines that a server serves. The HTTP server has given them
// away, and does not end them when it ends. It may be used from many goroutines at
// once.
type switchboard struct {
	serving sync.WaitGroup // one goroutine for each line

	mu     sync.Mutex
	conns  map[net.Conn]struct{} // maxLines at most
	closed bool
}

// frameTime is how long a caller may take to send the rest of a question, and to
// take an answer. Between two questions it may be silent: there are few lines, and
// the system finds out about callers that are gone.
const frameTime = 2 * time.Second

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + lineProtocol + "\r\n\r\n"

// answerLine makes a line of an HTTP connection, and serves it to its end.
func (p *presence) answerLine(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != lineProtocol {
		w.Header().Set("Upgrade", lineProtocol)
		respond(w, http.StatusUpgradeRequired, statusDocument{Error: "want an upgrade to " + lineProtocol})
		return
	}
	conn, early, err := http.NewResponseController(w).Hijack()
	if err != nil {
		respond(w, http.StatusInternalServerError, statusDocument{Error: err.Error()})
		return
	}
	defer conn.Close()                                     //nolint:errcheck // there is nothing left to be said
	if early.Reader.Buffered() > 0 || !p.lines.add(conn) { // a caller waits for the answer
		return
	}
	defer p.lines.remove(conn)
	_ = conn.SetWriteDeadline(time.Now().Add(frameTime)) // a connection that is closed needs none
	if _, err := io.WriteString(conn, switching); err == nil {
		p.serveLine(conn)
	}
}

// serveLine answers questions until the caller or the server has gone, or what
// comes makes no sense. A question about a single key waits for a moment, and so do
// those after it, if the key is about to be served here.
func (p *presence) serveLine(conn net.Conn) {
	in, out := newFrameReader(conn), make([]byte, 0, maxFrameSize)
	for {
		keys, err := readQuestion(conn, in)
		if err != nil {
			return
		}
		out = p.appendAnswer(out[:0], keys)
		_ = conn.SetWriteDeadline(time.Now().Add(frameTime)) // a connection that is closed needs none
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

// readQuestion waits for a question, but not for the rest of one.
func readQuestion(conn net.Conn, in *bufio.Reader) (keys []byte, err error) {
	size, err := awaitFrame(in)
	if err != nil {
		return nil, err
	}
	if in.Buffered() < size {
		_ = conn.SetReadDeadline(time.Now().Add(frameTime))
		defer conn.SetReadDeadline(time.Time{}) //nolint:errcheck // a connection that is closed needs none
	}
	return takeFrame(in, size)
}

func (p *presence) appendAnswer(out, keys []byte) []byte {
	count := len(keys) / wordSize
	out = appendHead(out, count)
	if count == 1 { // many would wait for each other
		p.await(context.Background(), leasehold.Key(wordAt(keys, 0)))
	}
	for i := range count {
		number, owned := p.look(leasehold.Key(wordAt(keys, i)))
		if !owned {
			number = declined
		}
		out = appendWord(out, number)
	}
	return out
}

// add takes a line up, unless there are too many or the server ends.
func (s *switchboard) add(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) == maxLines {
		return false
	}
	if s.conns == nil {
		s.conns = make(map[net.Conn]struct{})
	}
	s.conns[conn] = struct{}{}
	s.serving.Add(1)
	return true
}

func (s *switchboard) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
	s.serving.Done()
}

// close ends all lines, and returns when they have.
func (s *switchboard) close() {
	s.mu.Lock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close() // there is nothing left to be said
	}
	s.mu.Unlock()
	s.serving.Wait()
}
