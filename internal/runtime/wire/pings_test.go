package wire_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A tap records the data of a connection.
type tap struct {
	net.Conn
	mu             sync.Mutex
	written, heard []byte
}

func (t *tap) Write(b []byte) (int, error) {
	n, err := t.Conn.Write(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written = append(t.written, b[:n]...)
	return n, err
}

func (t *tap) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard = append(t.heard, b[:n]...)
	return n, err
}

// frames counts HTTP/2 frames by type.
func frames(b []byte) map[byte]int {
	const header = 9
	count := make(map[byte]int)
	for len(b) >= header {
		count[b[3]]++
		length := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
		b = b[min(len(b), header+length):]
	}
	return count
}

// Messages cause no pings: neither side measures the bandwidth.
func TestMessagesCostNoPings(t *testing.T) {
	const (
		preface  = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		data     = 0x0
		ping     = 0x6
		messages = 20
	)
	listener := bufconn.Listen(1 << 20)
	through := &tap{}
	options := grpc.WithContextDialer(func(ctx context.Context, _ string) (c net.Conn, err error) {
		through.Conn, err = listener.DialContext(ctx)
		return through, err
	})
	serveOn(t, listener, &server{echoes: true})
	stream, err := leaseholdv1.NewLookupServiceClient(dial(t, listener, options)).Follow(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		if err := stream.Send(wire.FromLookupRequest(&protocol.LookupRequest{Namespace: "n", Seq: protocol.Seq(i + 1)})); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	through.mu.Lock()
	defer through.mu.Unlock()
	for side, all := range map[string]map[byte]int{"lookup": frames(through.written[preface:]), "manager": frames(through.heard)} {
		if all[data] < messages || all[ping] > 0 {
			t.Errorf("the %s sent %d frames of data, want at least %d, and %d pings, want none", side, all[data], messages, all[ping])
		}
	}
}
