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

// opened is the context of a call that opens a transfer.
func opened(t *testing.T, change func(*leaseholdv1.TransferOpening)) context.Context {
	t.Helper()
	o := &leaseholdv1.TransferOpening{Version: wire.Version, Namespace: "presence", Ticket: testTicket[:], Session: testSession[:]}
	change(o)
	ctx, err := withOpening(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

func asIs(*leaseholdv1.TransferOpening) {}

func withoutTicket(o *leaseholdv1.TransferOpening) { o.Ticket = nil }

func chunk(number uint64, data string, sizes ...uint32) *leaseholdv1.TransferRequest {
	c := &leaseholdv1.TransferChunk{Number: number, Data: []byte(data), Sizes: sizes}
	return &leaseholdv1.TransferRequest{Kind: &leaseholdv1.TransferRequest_Chunk{Chunk: c}}
}

func end(number uint64) *leaseholdv1.TransferRequest {
	t := newTally()
	return &leaseholdv1.TransferRequest{Kind: &leaseholdv1.TransferRequest_End{End: t.end(number)}}
}

// stream opens one along the road and says some things.
func (r *road) stream(ctx context.Context, t *testing.T, says ...*leaseholdv1.TransferRequest) client {
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
	for _, m := range says {
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	return stream
}

// What a source says that makes no sense ends its transfer, and nothing else.
func TestHostileSource(t *testing.T) {
	big := string(make([]byte, maxChunk))
	many := make([]uint32, maxChunk/perRecord+1)
	for name, test := range map[string]struct {
		says []*leaseholdv1.TransferRequest
		want leasehold.Kind
	}{
		"a chunk out of order":     {[]*leaseholdv1.TransferRequest{chunk(2, "a", 1)}, leasehold.ErrInvalid},
		"a chunk again":            {[]*leaseholdv1.TransferRequest{chunk(1, "a", 1), chunk(1, "a", 1)}, leasehold.ErrInvalid},
		"a chunk of nothing":       {[]*leaseholdv1.TransferRequest{chunk(1, "")}, leasehold.ErrLimit},
		"a chunk with too much":    {[]*leaseholdv1.TransferRequest{chunk(1, big, maxChunk-1, 1)}, leasehold.ErrLimit},
		"a chunk with too many":    {[]*leaseholdv1.TransferRequest{chunk(1, "", many...)}, leasehold.ErrLimit},
		"sizes that are too small": {[]*leaseholdv1.TransferRequest{chunk(1, "abc", 1, 1)}, leasehold.ErrInvalid},
		"sizes that are too large": {[]*leaseholdv1.TransferRequest{chunk(1, "abc", 1, 1<<32-1)}, leasehold.ErrInvalid},
		"more than the window":     {overflow(), leasehold.ErrLimit},
		"an end out of order":      {[]*leaseholdv1.TransferRequest{end(2)}, leasehold.ErrInvalid},
		"an end of something else": {[]*leaseholdv1.TransferRequest{chunk(1, "a", 1), end(2)}, leasehold.ErrInternal},
		"a chunk after the end":    {[]*leaseholdv1.TransferRequest{end(1), chunk(2, "a", 1)}, leasehold.ErrInvalid},
		"an end after the end":     {[]*leaseholdv1.TransferRequest{end(1), end(2)}, leasehold.ErrInvalid},
		"nothing":                  {[]*leaseholdv1.TransferRequest{{}}, leasehold.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoad()
				s := r.serve(t)
				s.Expect(testTicket, "", func(in *Incoming) { t.Cleanup(in.Release) }) // reads nothing
				stream := r.stream(opened(t, asIs), t, test.says...)
				for {
					answer, err := stream.Recv()
					if err != nil {
						t.Fatalf("the stream has ended without a refusal: %v", err)
					}
					if refused := answer.GetRefused(); refused != nil {
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

// overflow is more than may be under way.
func overflow() []*leaseholdv1.TransferRequest {
	var out []*leaseholdv1.TransferRequest
	const size = maxChunk - perRecord
	for n := range Window/maxChunk + 1 {
		out = append(out, chunk(uint64(n+1), string(make([]byte, size)), size))
	}
	return out
}

// A stream that does not say who it is does not stay.
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
			synctest.Test(t, func(t *testing.T) { wantTurnedAway(opened(t, test.change), t, test.code) })
		})
	}
	for name, openings := range map[string][]string{
		"none":     nil,
		"nonsense": {"\xff"},
		"two":      {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				for _, o := range openings {
					ctx = metadata.AppendToOutgoingContext(ctx, openingKey, o)
				}
				wantTurnedAway(ctx, t, codes.InvalidArgument)
			})
		})
	}
}

func wantTurnedAway(ctx context.Context, t *testing.T, code codes.Code) {
	t.Helper()
	r := newRoad()
	expect(r.serve(t), testTicket, nil)
	if _, err := r.stream(ctx, t).Recv(); status.Code(err) != code {
		t.Errorf("the stream ends with %v, want %v", err, code)
	}
}

// Strangers in any number do not pile up.
func TestStrangersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		s := r.serve(t)
		for range maxStrangers {
			r.stream(opened(t, withoutTicket), t)
		}
		synctest.Wait()
		if _, err := r.stream(opened(t, withoutTicket), t).Recv(); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("one more stranger hears %v", err)
		}
		o := r.transfer(t) // one that is expected has to wait, and is let in
		expect(s, testTicket, nil)
		if err := send(o, []string{"a"}); err != nil {
			t.Error(err)
		}
	})
}

// The newer of two streams of one source counts: the older may be one that its
// source has given up.
func TestNewerStreamReplacesOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		i := expect(r.serve(t), testTicket, nil)
		old := r.stream(opened(t, asIs), t, chunk(1, "a", 1))
		synctest.Wait()
		next := r.stream(opened(t, asIs), t)
		answer, err := next.Recv()
		if err != nil || answer.GetAccepted().GetNext() != 2 {
			t.Errorf("the newer stream hears %v, %v", answer, err)
		}
		for err = nil; err == nil; {
			_, err = old.Recv()
		}
		if status.Code(err) != codes.Aborted {
			t.Errorf("the older stream hears %v", err)
		}
		if err := next.Send(chunk(2, "b", 1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := i.in.put(1, chunk(3, "c", 1)); err != nil { // what the older one had said before it ended
			t.Error(err)
		}
		synctest.Wait()
		if got := i.has(); len(got) != 2 {
			t.Errorf("arrived: %q", got)
		}
	})
}

// Two streams of one source that wait for their turn take one place.
func TestStreamsOfOneSourceTakeOnePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		s := r.serve(t)
		for range MaxTransfers {
			s.slots <- struct{}{}
		}
		i := expect(s, testTicket, make(chan struct{}))
		r.stream(opened(t, asIs), t)
		r.stream(opened(t, asIs), t)
		synctest.Wait()
		if i.in.begun {
			t.Error("it has begun before its turn")
		}
		for range MaxTransfers {
			<-s.slots
		}
		synctest.Wait()
		if n := len(s.slots); n != 1 || !i.in.begun {
			t.Errorf("%d places are taken; begun: %t", n, i.in.begun)
		}
	})
}

// script is a target that says what it is told, and then nothing.
type script struct {
	leaseholdv1.UnimplementedMoverServiceServer
	says []*leaseholdv1.TransferResponse
}

func (s script) Transfer(stream grpc.BidiStreamingServer[leaseholdv1.TransferRequest, leaseholdv1.TransferResponse]) error {
	for _, m := range s.says {
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
		says []*leaseholdv1.TransferResponse
		kind leasehold.Kind
		why  string
	}{
		"does not answer":          {[]*leaseholdv1.TransferResponse{taken}, leasehold.ErrInternal, "it has not answered the opening"},
		"is too new":               {[]*leaseholdv1.TransferResponse{accepted(wire.Version+2, 1)}, leasehold.ErrStale, "upgrade this side"},
		"wants what never was":     {[]*leaseholdv1.TransferResponse{accepted(wire.Version, 3)}, leasehold.ErrInternal, "never sent"},
		"wants what was long ago":  {[]*leaseholdv1.TransferResponse{accepted(wire.Version, 0)}, leasehold.ErrInternal, "never sent"},
		"has taken what never was": {[]*leaseholdv1.TransferResponse{accepted(wire.Version, 1), taken}, leasehold.ErrInternal, "never sent"},
		"confirms too early":       {[]*leaseholdv1.TransferResponse{accepted(wire.Version, 1), confirmed}, leasehold.ErrInternal, "before it was sent the end"},
		"says nothing":             {nil, leasehold.ErrUnavailable, "the target has not answered"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoad()
				server := grpc.NewServer(serverOptions()...)
				leaseholdv1.RegisterMoverServiceServer(server, script{says: test.says})
				go func() { _ = server.Serve(r.listener) }()
				o := r.transfer(t)
				_ = o.Send([]byte("a"))
				took, err := fails(o)
				wantError(t, err, test.kind, test.why)
				if want := map[bool]time.Duration{true: testIdle}[test.says == nil]; took != want {
					t.Errorf("it took %v, want %v", took, want)
				}
				o.Close()
				server.Stop()
			})
		})
	}
}
