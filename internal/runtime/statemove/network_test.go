package statemove

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

const testIdle = 30 * time.Second

var (
	testTicket  = protocol.Ticket{1, 2, 3}
	testSession = leasehold.Session{4, 5, 6}
)

// A fakeNetwork connects a source to a target. A test can cut its connections, or let each break
// after a number of bytes.
type fakeNetwork struct {
	listener *bufconn.Listener
	mu       sync.Mutex
	closed   bool
	maxBytes int // per connection; 0: no limit
	open     []net.Conn
	dialled  int
}

func newFakeNetwork() *fakeNetwork { return &fakeNetwork{listener: bufconn.Listen(1 << 16)} }

func (r *fakeNetwork) dial(ctx context.Context, _ string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errors.New("the network is down")
	}
	conn, err := r.listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	r.open = append(r.open, conn)
	r.dialled++
	if r.maxBytes == 0 {
		return conn, nil
	}
	return &fragile{Conn: conn, left: r.maxBytes}, nil
}

// cut breaks all connections; dials fail if closed.
func (r *fakeNetwork) cut(closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = closed
	for _, c := range r.open {
		_ = c.Close()
	}
	r.open = nil
}

func (r *fakeNetwork) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dialled
}

// A fragile connection breaks after a number of written bytes.
type fragile struct {
	net.Conn
	mu   sync.Mutex
	left int
}

func (f *fragile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left -= len(b); f.left < 0 {
		_ = f.Close()
	}
	return f.Conn.Write(b)
}

func (r *fakeNetwork) options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(r.dial), grpc.WithTransportCredentials(insecure.NewCredentials())}
}

// departure returns the configuration of a transfer to the target.
func (r *fakeNetwork) departure() Departure {
	return Departure{Namespace: "presence", Ticket: testTicket, Addr: "target:1", Session: testSession, Idle: testIdle, DialOptions: r.options()}
}

// serve starts the target.
func (r *fakeNetwork) serve(t *testing.T) *Server {
	s := Serve(r.listener, ServerConfig{Namespace: "presence", Session: testSession, Idle: testIdle, Credentials: insecure.NewCredentials(), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Close)
	return s
}

// transfer opens a transfer to the target.
func (r *fakeNetwork) transfer(t *testing.T) *Outgoing {
	o := Open(t.Context(), r.departure())
	t.Cleanup(o.Close)
	return o
}

// An importer records what it reads, and confirms.
type importer struct {
	in   *Incoming
	gate chan struct{} // if set, one element permits one more record
	done chan struct{}

	mu      sync.Mutex
	records []string
	err     error
}

// expect announces a transfer and imports it.
func expect(s *Server, ticket protocol.Ticket, gate chan struct{}) *importer {
	i := &importer{gate: gate, done: make(chan struct{})}
	i.in = s.Expect(ticket, "", func(in *Incoming) {
		go func() {
			defer close(i.done)
			defer in.Release()
			i.read(in)
		}()
	})
	return i
}

func (i *importer) read(in *Incoming) {
	for record, err := range in.Records() {
		if err != nil {
			i.err = err
			return
		}
		i.mu.Lock()
		i.records = append(i.records, string(record))
		i.mu.Unlock()
		if i.gate != nil {
			select {
			case <-i.gate:
			case <-in.Context().Done():
				return
			}
		}
	}
	if i.err = in.Complete(); i.err == nil {
		in.Confirm()
	}
}

func (i *importer) has() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.records
}

// wantError checks the kind and the text of an error.
func wantError(t *testing.T, err error, kind leasehold.Kind, parts ...string) {
	t.Helper()
	if leasehold.KindOf(err) != kind {
		t.Errorf("error of kind %v, want %v: %v", leasehold.KindOf(err), kind, err)
	}
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %[2]v, want %[1]q", part, err)
		}
	}
}
