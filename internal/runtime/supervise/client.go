package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// requestTimeout bounds a request to the supervisor, which usually takes less than a millisecond.
const requestTimeout = time.Second

// process is the connection of this process. A process has one supervisor, whatever owners it has.
var process = sync.OnceValues(func() (*Client, error) { return Dial(os.Getenv(Variable)) })

// Process returns the connection of this process to its supervisor; nil if it has none. It is
// opened at the first call.
func Process() (*Client, error) { return process() }

// A Client is a connection to a supervisor. It is safe for concurrent use.
type Client struct {
	mu   sync.Mutex
	conn *net.UnixConn
	seq  uint64
}

// newClient waits for the reply to the hello.
func newClient(conn *net.UnixConn) (*Client, error) {
	c := &Client{conn: conn}
	if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if _, err := c.receive(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// Close closes the connection. Registered sessions stay registered.
func (c *Client) Close() error { return c.conn.Close() }

// Register registers a session, and returns the hash of its token. A repetition returns the same hash.
func (c *Client) Register(s *Session) (hash table.DeathHash, err error) {
	r, err := c.call(opRegister, s)
	if err != nil {
		return hash, err
	}
	if len(r.Hash) != len(hash) {
		return hash, fmt.Errorf("the supervisor sent a hash of %d bytes, want %d", len(r.Hash), len(hash))
	}
	return table.DeathHash(r.Hash), nil
}

// Leave removes a session that has released its leases: its end is not reported.
func (c *Client) Leave(s *Session) error {
	_, err := c.call(opLeave, s)
	return err
}

func (c *Client) call(op string, s *Session) (*reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	data, err := json.Marshal(request{Version: version, Seq: c.seq, Op: op, Session: s})
	if err != nil {
		return nil, err
	}
	if len(data) > maxMessage {
		return nil, fmt.Errorf("the session has %d bytes, want at most %d", len(data), maxMessage)
	}
	if err := c.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(data); err != nil {
		return nil, connError(err)
	}
	return c.receive()
}

// connError explains an error of the connection.
func connError(err error) error {
	for _, closed := range []error{syscall.EPIPE, syscall.ECONNRESET, io.EOF} {
		if errors.Is(err, closed) {
			return fmt.Errorf("the supervisor has ended: %w", err)
		}
	}
	return fmt.Errorf("the supervisor does not reply: %w", err)
}

// receive returns the reply to the newest request, and drops late replies to older ones.
func (c *Client) receive() (*reply, error) {
	data := make([]byte, maxMessage)
	for {
		n, err := c.conn.Read(data)
		if err != nil {
			return nil, connError(err)
		}
		var r reply
		switch err := decode(data[:n], &r, &r.Version); {
		case err != nil:
			return nil, err
		case r.Seq != c.seq:
		case r.Error != "":
			return nil, errors.New(r.Error)
		default:
			return &r, nil
		}
	}
}
