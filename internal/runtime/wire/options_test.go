package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

// A server sends the same replies to every request.
type server struct {
	leaseholdv1.UnimplementedOwnerServiceServer
	leaseholdv1.UnimplementedLookupServiceServer
	answers []any // messages and frames
	echoes  bool  // it replies to each request with its sequence number only
}

func (s *server) Hold(stream leaseholdv1.OwnerService_HoldServer) error {
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

func (s *server) Follow(stream leaseholdv1.LookupService_FollowServer) error {
	for s.echoes {
		r, err := stream.Recv()
		if err == nil {
			err = stream.Send(wire.FromLookupReply(&protocol.LookupReply{Namespace: "n", Term: 1, Echo: protocol.Seq(r.GetSeq())}))
		}
		if err != nil {
			return err
		}
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	for _, a := range s.answers {
		if err := stream.SendMsg(a); err != nil {
			return err
		}
	}
	return wire.FromError(leasehold.Errorf("follow", leasehold.ErrNotFound, "n", "no such namespace"))
}

// serve runs a server with ServerOptions on an in-memory connection.
func serve(t *testing.T, s *server) *bufconn.Listener {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	serveOn(t, listener, s)
	return listener
}

func serveOn(t *testing.T, listener *bufconn.Listener, s *server) {
	t.Helper()
	g := grpc.NewServer(wire.ServerOptions()...)
	leaseholdv1.RegisterOwnerServiceServer(g, s)
	leaseholdv1.RegisterLookupServiceServer(g, s)
	done := make(chan error)
	go func() { done <- g.Serve(listener) }()
	t.Cleanup(func() {
		g.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func dial(t *testing.T, listener *bufconn.Listener, extra ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options := append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	conn, err := grpc.NewClient("passthrough:///manager", append(options, extra...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// gRPC delivers frames like messages, and errors unchanged.
func TestFramesThroughGRPC(t *testing.T) {
	reply := &protocol.LookupReply{Namespace: "n", Term: 1, LSN: 3, Snapshot: tableAfter(t, walk())}
	frame, err := wire.EncodeUpdate(reply)
	if err != nil {
		t.Fatal(err)
	}
	message := wire.FromLookupReply(reply)
	answered := proto.Clone(message).(*leaseholdv1.FollowResponse)
	answered.GetUpdate().Echo, answered.GetUpdate().Age = 7, 8
	want := []*leaseholdv1.FollowResponse{message, message, answered, message}

	conn := dial(t, serve(t, &server{answers: []any{message, frame, frame.Answer(7, 8), frame}}))
	stream, err := leaseholdv1.NewLookupServiceClient(conn).Follow(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(wire.FromLookupRequest(&protocol.LookupRequest{Namespace: "n", Seq: 1})); err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		got, err := stream.Recv()
		if diff := cmp.Diff(w, got, protocmp.Transform()); diff != "" || err != nil {
			t.Fatalf("reply %d: error %v (-want +got):\n%s", i, err, diff)
		}
	}
	_, err = stream.Recv()
	if err = wire.ToError(err); leasehold.KindOf(err) != leasehold.ErrNotFound || err.Error() != `follow "n": no such namespace` {
		t.Errorf("error %v (%v)", err, leasehold.KindOf(err))
	}
}

// rawCall sends the beginning of a message with an arbitrary length prefix, and returns the status.
func rawCall(t *testing.T, listener *bufconn.Listener, announced uint32, body []byte) (code, message string) {
	t.Helper()
	transport := &http.Transport{
		Protocols:   new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.DialContext(ctx) },
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	head := binary.BigEndian.AppendUint32([]byte{0}, announced)
	request, err := http.NewRequestWithContext(deadline(t), http.MethodPost, "http://manager/leasehold.v1.OwnerService/Hold",
		bytes.NewReader(append(head, body...)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	for _, h := range []http.Header{response.Trailer, response.Header} {
		if h.Get("Grpc-Status") != "" {
			return h.Get("Grpc-Status"), h.Get("Grpc-Message")
		}
	}
	t.Fatal("no status has arrived")
	return "", ""
}

// A message with a length prefix of a gigabyte is rejected before memory is allocated for it.
func TestHugeMessagesAreRefusedUnread(t *testing.T) {
	listener := serve(t, &server{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	code, message := rawCall(t, listener, 1<<30, []byte("x"))
	runtime.ReadMemStats(&after)
	if code != "8" || !strings.Contains(message, "1073741824") {
		t.Errorf("status %s %q, want RESOURCE_EXHAUSTED that names the length", code, message)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

// A megabyte of empty leases has half a million of them.
func TestManySmallPartsAreRefused(t *testing.T) {
	body := bytes.Repeat([]byte{8<<3 | 2, 0}, 1<<19)
	code, message := rawCall(t, serve(t, &server{}), uint32(len(body)), body)
	if code != "13" || !strings.Contains(message, "parts") {
		t.Errorf("status %s %q, want INTERNAL that names the parts", code, message)
	}
}

// A client does not send a request above the limit, and a manager rejects it.
func TestRequestsAreBoundedAtBothEnds(t *testing.T) {
	listener := serve(t, &server{})
	big := &leaseholdv1.HoldRequest{Namespace: strings.Repeat("x", wire.MaxRequest+1)}
	for _, c := range []struct {
		name  string
		extra []grpc.DialOption
		want  string
	}{
		{"our client", nil, "trying to send message larger than max"},
		{"another client", []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1 << 30))}, "received message larger than max"},
	} {
		stream, err := leaseholdv1.NewOwnerServiceClient(dial(t, listener, c.extra...)).Hold(deadline(t))
		if err != nil {
			t.Fatal(err)
		}
		if err = stream.Send(big); err == nil || err == io.EOF { //nolint:errorlint // io.EOF is not wrapped
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Responses have a higher limit than requests.
func TestResponsesAreBounded(t *testing.T) {
	for _, c := range []struct {
		size int
		want codes.Code
	}{{4 * wire.MaxRequest, codes.OK}, {wire.MaxResponse + 1, codes.ResourceExhausted}} {
		update := &leaseholdv1.Update{Manager: strings.Repeat("x", c.size)}
		answer := &leaseholdv1.FollowResponse{Kind: &leaseholdv1.FollowResponse_Update{Update: update}}
		stream, err := leaseholdv1.NewLookupServiceClient(dial(t, serve(t, &server{answers: []any{answer}}))).Follow(deadline(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&leaseholdv1.FollowRequest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != c.want {
			t.Errorf("%d bytes: %v, want %v", c.size, err, c.want)
		}
	}
}

// A connection without streams is closed after the idle timeout, and the next call reconnects transparently.
func TestConnectionsWithoutAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 20)
		g := grpc.NewServer(wire.ServerOptions()...)
		leaseholdv1.RegisterLookupServiceServer(g, &server{answers: []any{&leaseholdv1.FollowResponse{}}})
		serving := make(chan error, 1)
		go func() { serving <- g.Serve(listener) }()
		var dialled []net.Conn
		conn := dial(t, listener, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := listener.DialContext(ctx)
			dialled = append(dialled, c)
			return c, err
		}))
		for range 2 {
			stream, err := leaseholdv1.NewLookupServiceClient(conn).Follow(deadline(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(&leaseholdv1.FollowRequest{}); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err == nil {
				t.Fatal("the stream does not end")
			}
			time.Sleep(40 * time.Second)
		}
		if len(dialled) != 2 {
			t.Errorf("%d connections, want one per call", len(dialled))
		}
		g.Stop()
		if err := <-serving; err != nil {
			t.Error(err)
		}
	})
}
