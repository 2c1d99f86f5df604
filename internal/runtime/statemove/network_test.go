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

// A road leads to a target. Its connections can be cut, and may be made to break
// by themselves after so many bytes.
type road struct {
	listener *bufconn.Listener
	mu       sync.Mutex
	closed   bool
	lasts    int // bytes that each connection lasts; 0 for ever
	open     []net.Conn
	dialled  int
}

func newRoad() *road { return &road{listener: bufconn.Listen(1 << 16)} }

func (r *road) dial(ctx context.Context, _ string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errors.New("the road is closed")
	}
	conn, err := r.listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	r.open = append(r.open, conn)
	r.dialled++
	if r.lasts == 0 {
		return conn, nil
	}
	return &fragile{Conn: conn, left: r.lasts}, nil
}

// cut breaks all connections; new ones work if the road is open.
func (r *road) cut(closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = closed
	for _, c := range r.open {
		_ = c.Close()
	}
	r.open = nil
}

func (r *road) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dialled
}

// A fragile connection breaks when so much has been written to it.
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

func (r *road) options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(r.dial), grpc.WithTransportCredentials(insecure.NewCredentials())}
}

// departure is one along the road.
func (r *road) departure() Departure {
	return Departure{Namespace: "presence", Ticket: testTicket, Addr: "target:1", Session: testSession, Idle: testIdle, DialOptions: r.options()}
}

// serve is a target at the end of the road.
func (r *road) serve(t *testing.T) *Server {
	s := Serve(r.listener, ServerConfig{Namespace: "presence", Session: testSession, Idle: testIdle, Credentials: insecure.NewCredentials(), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Close)
	return s
}

// open opens a transfer along the road.
func (r *road) transfer(t *testing.T) *Outgoing {
	o := Open(t.Context(), r.departure())
	t.Cleanup(o.Close)
	return o
}

// An importer keeps what it reads, and confirms.
type importer struct {
	in   *Incoming
	gate chan struct{} // if set, a record is read for each that comes
	done chan struct{}

	mu      sync.Mutex
	records []string
	err     error
}

// expect lets a source in, and reads all it sends.
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

// wantError checks an error's kind and what it says.
func wantError(t *testing.T, err error, kind leasehold.Kind, parts ...string) {
	t.Helper()
	if leasehold.KindOf(err) != kind {
		t.Errorf("error of kind %v, want %v: %v", leasehold.KindOf(err), kind, err)
	}
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}
