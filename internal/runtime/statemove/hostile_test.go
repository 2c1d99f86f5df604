package statemove

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// openingContext returns the context of a call that opens a transfer.
func openingContext(t *testing.T, change func(*leaseholdv1.TransferOpening)) context.Context {
	t.Helper()
	o := &leaseholdv1.TransferOpening{Version: wire.Version, Namespace: "presence", Ticket: testTicket[:], Session: testSession[:]}
	change(o)
	ctx, err := withOpening(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

func unchanged(*leaseholdv1.TransferOpening) {}

func withoutTicket(o *leaseholdv1.TransferOpening) { o.Ticket = nil }

func chunk(number uint64, data string, sizes ...uint32) *leaseholdv1.TransferRequest {
	c := &leaseholdv1.TransferChunk{Number: number, Data: []byte(data), Sizes: sizes}
	return &leaseholdv1.TransferRequest{Kind: &leaseholdv1.TransferRequest_Chunk{Chunk: c}}
}

func end(number uint64) *leaseholdv1.TransferRequest {
	t := newTally()
	return &leaseholdv1.TransferRequest{Kind: &leaseholdv1.TransferRequest_End{End: t.end(number)}}
}

// stream opens a stream and sends messages.
func (r *fakeNetwork) stream(ctx context.Context, t *testing.T, messages ...*leaseholdv1.TransferRequest) client {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///target:1", append(dialOptions(), r.options()...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stream, err := leaseholdv1.NewMoverServiceClient(conn).Transfer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	return stream
}

// An invalid message of a source ends its transfer, and no other.
func TestHostileSource(t *testing.T) {
	big := string(make([]byte, maxChunk))
	many := make([]uint32, maxChunk/recordOverhead+1)
	for name, test := range map[string]struct {
		messages []*leaseholdv1.TransferRequest
		want     leasehold.Kind
	}{
		"a chunk out of order":          {[]*leaseholdv1.TransferRequest{chunk(2, "a", 1)}, leasehold.ErrInvalid},
		"a chunk again":                 {[]*leaseholdv1.TransferRequest{chunk(1, "a", 1), chunk(1, "a", 1)}, leasehold.ErrInvalid},
		"an empty chunk":                {[]*leaseholdv1.TransferRequest{chunk(1, "")}, leasehold.ErrLimit},
		"a chunk with too much":         {[]*leaseholdv1.TransferRequest{chunk(1, big, maxChunk-1, 1)}, leasehold.ErrLimit},
		"a chunk with too many records": {[]*leaseholdv1.TransferRequest{chunk(1, "", many...)}, leasehold.ErrLimit},
		"sizes that are too small":      {[]*leaseholdv1.TransferRequest{chunk(1, "abc", 1, 1)}, leasehold.ErrInvalid},
		"sizes that are too large":      {[]*leaseholdv1.TransferRequest{chunk(1, "abc", 1, 1<<32-1)}, leasehold.ErrInvalid},
		"more than the window":          {overflow(), leasehold.ErrLimit},
		"an end out of order":           {[]*leaseholdv1.TransferRequest{end(2)}, leasehold.ErrInvalid},
		"a wrong checksum":              {[]*leaseholdv1.TransferRequest{chunk(1, "a", 1), end(2)}, leasehold.ErrInternal},
		"a chunk after the end":         {[]*leaseholdv1.TransferRequest{end(1), chunk(2, "a", 1)}, leasehold.ErrInvalid},
		"an end after the end":          {[]*leaseholdv1.TransferRequest{end(1), end(2)}, leasehold.ErrInvalid},
		"nothing":                       {[]*leaseholdv1.TransferRequest{{}}, leasehold.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFakeNetwork()
				s := r.serve(t)
				s.Expect(testTicket, "", func(in *Incoming) { t.Cleanup(in.Release) }) // reads nothing
				stream := r.stream(openingContext(t, unchanged), t, test.messages...)
				for {
					reply, err := stream.Recv()
					if err != nil {
						t.Fatalf("the stream ended without a refusal: %v", err)
					}
					if refused := reply.GetRefused(); refused != nil {
						wantError(t, wire.ToRefusal(refused), test.want)
						break
					}
				}
				other := r.departure()
				other.Ticket = protocol.Ticket{9}
				expect(s, other.Ticket, nil)
				o := Open(t.Context(), other)
				defer o.Close()
				if err := send(o, []string{"a"}); err != nil {
					t.Errorf("another transfer: %v", err)
				}
			})
		})
	}
}

// overflow returns chunks above the window.
func overflow() []*leaseholdv1.TransferRequest {
	var out []*leaseholdv1.TransferRequest
	const size = maxChunk - recordOverhead
	for n := range Window/maxChunk + 1 {
		out = append(out, chunk(uint64(n+1), string(make([]byte, size)), size))
	}
	return out
}

// A stream without a valid opening is rejected.
func TestStreamsThatDoNotOpen(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*leaseholdv1.TransferOpening)
		code   codes.Code
	}{
		"no version":     {func(o *leaseholdv1.TransferOpening) { o.Version = 0 }, codes.InvalidArgument},
		"far version":    {func(o *leaseholdv1.TransferOpening) { o.Version += 2 }, codes.FailedPrecondition},
		"short ticket":   {func(o *leaseholdv1.TransferOpening) { o.Ticket = o.Ticket[:3] }, codes.PermissionDenied},
		"long ticket":    {func(o *leaseholdv1.TransferOpening) { o.Ticket = append(o.Ticket, 1) }, codes.PermissionDenied},
		"short session":  {func(o *leaseholdv1.TransferOpening) { o.Session = o.Session[:3] }, codes.FailedPrecondition},
		"missing fields": {func(o *leaseholdv1.TransferOpening) { o.Ticket, o.Session = nil, nil }, codes.FailedPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { wantRejected(openingContext(t, test.change), t, test.code) })
		})
	}
	for name, openings := range map[string][]string{
		"none":      nil,
		"malformed": {"\xff"},
		"two":       {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				for _, o := range openings {
					ctx = metadata.AppendToOutgoingContext(ctx, openingKey, o)
				}
				wantRejected(ctx, t, codes.InvalidArgument)
			})
		})
	}
}

func wantRejected(ctx context.Context, t *testing.T, code codes.Code) {
	t.Helper()
	r := newFakeNetwork()
	expect(r.serve(t), testTicket, nil)
	if _, err := r.stream(ctx, t).Recv(); status.Code(err) != code {
		t.Errorf("the stream ends with %v, want %v", err, code)
	}
}

// The number of pending streams is limited, and an expected source is accepted at the limit.
func TestPendingStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		s := r.serve(t)
		for range maxPendingStreams {
			r.stream(openingContext(t, withoutTicket), t)
		}
		synctest.Wait()
		if _, err := r.stream(openingContext(t, withoutTicket), t).Recv(); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("one more pending stream: %v", err)
		}
		o := r.transfer(t) // it retries until there is room
		expect(s, testTicket, nil)
		if err := send(o, []string{"a"}); err != nil {
			t.Error(err)
		}
	})
}

// A newer stream replaces an older one of the same source, which may be a broken connection.
func TestNewerStreamReplacesOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		i := expect(r.serve(t), testTicket, nil)
		old := r.stream(openingContext(t, unchanged), t, chunk(1, "a", 1))
		synctest.Wait()
		next := r.stream(openingContext(t, unchanged), t)
		reply, err := next.Recv()
		if err != nil || reply.GetAccepted().GetNext() != 2 {
			t.Errorf("reply on the newer stream: %v, %v", reply, err)
		}
		for err = nil; err == nil; {
			_, err = old.Recv()
		}
		if status.Code(err) != codes.Aborted {
			t.Errorf("error of the older stream: %v", err)
		}
		if err := next.Send(chunk(2, "b", 1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := i.in.put(1, chunk(3, "c", 1)); err != nil { // a late message of the older stream
			t.Error(err)
		}
		synctest.Wait()
		if got := i.has(); len(got) != 2 {
			t.Errorf("received: %q", got)
		}
	})
}

// Two pending streams of one source take one slot.
func TestStreamsOfOneSourceTakeOneSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		s := r.serve(t)
		for range MaxTransfers {
			s.slots <- struct{}{}
		}
		i := expect(s, testTicket, make(chan struct{}))
		r.stream(openingContext(t, unchanged), t)
		r.stream(openingContext(t, unchanged), t)
		synctest.Wait()
		if i.in.begun {
			t.Error("the transfer has begun without a slot")
		}
		for range MaxTransfers {
			<-s.slots
		}
		synctest.Wait()
		if n := len(s.slots); n != 1 || !i.in.begun {
			t.Errorf("%d slots are taken; begun: %t", n, i.in.begun)
		}
	})
}

// script is a target that sends some replies, and then nothing.
type script struct {
	leaseholdv1.UnimplementedMoverServiceServer
	replies []*leaseholdv1.TransferResponse
}

func (s script) Transfer(stream grpc.BidiStreamingServer[leaseholdv1.TransferRequest, leaseholdv1.TransferResponse]) error {
	for _, m := range s.replies {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

func accepted(version uint32, next uint64) *leaseholdv1.TransferResponse {
	a := &leaseholdv1.TransferAccepted{Version: version, Next: next}
	return &leaseholdv1.TransferResponse{Kind: &leaseholdv1.TransferResponse_Accepted{Accepted: a}}
}

func TestHostileTarget(t *testing.T) {
	taken := &leaseholdv1.TransferResponse{Kind: &leaseholdv1.TransferResponse_Taken{Taken: &leaseholdv1.TransferTaken{Number: 7}}}
	confirmed := &leaseholdv1.TransferResponse{Kind: &leaseholdv1.TransferResponse_Confirmed{}}
	for name, test := range map[string]struct {
		replies []*leaseholdv1.TransferResponse
		kind    leasehold.Kind
		text    string
	}{
		"does not reply":              {[]*leaseholdv1.TransferResponse{taken}, leasehold.ErrInternal, "neither an acceptance nor a refusal"},
		"too new":                     {[]*leaseholdv1.TransferResponse{accepted(wire.Version+2, 1)}, leasehold.ErrStale, "upgrade the receiver"},
		"requests a future chunk":     {[]*leaseholdv1.TransferResponse{accepted(wire.Version, 3)}, leasehold.ErrInternal, "not sent"},
		"requests an old chunk":       {[]*leaseholdv1.TransferResponse{accepted(wire.Version, 0)}, leasehold.ErrInternal, "not sent"},
		"acknowledges a future chunk": {[]*leaseholdv1.TransferResponse{accepted(wire.Version, 1), taken}, leasehold.ErrInternal, "not sent"},
		"confirms too early":          {[]*leaseholdv1.TransferResponse{accepted(wire.Version, 1), confirmed}, leasehold.ErrInternal, "before the end was sent"},
		"no reply":                    {nil, leasehold.ErrUnavailable, "the target has not replied"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFakeNetwork()
				server := grpc.NewServer(serverOptions()...)
				leaseholdv1.RegisterMoverServiceServer(server, script{replies: test.replies})
				go func() { _ = server.Serve(r.listener) }()
				o := r.transfer(t)
				_ = o.Send([]byte("a"))
				took, err := awaitFailure(o)
				wantError(t, err, test.kind, test.text)
				if want := map[bool]time.Duration{true: testIdle}[test.replies == nil]; took != want {
					t.Errorf("failed after %v, want %v", took, want)
				}
				o.Close()
				server.Stop()
			})
		})
	}
}
