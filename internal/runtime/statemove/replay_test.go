package statemove

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// wantRefused says all of a recorded transfer on a new stream, and wants it turned away.
func (r *road) wantRefused(t *testing.T, what string, code codes.Code, change func(*leaseholdv1.TransferOpening)) {
	t.Helper()
	stream := r.stream(opened(t, change), t)
	for _, m := range []*leaseholdv1.TransferRequest{chunk(1, "old", 3), end(2)} {
		_ = stream.Send(m) // it is not read
	}
	for {
		answer, err := stream.Recv()
		if err != nil {
			if status.Code(err) != code {
				t.Errorf("%s: the stream ends with %v, want %v", what, err, code)
			}
			return
		}
		if answer.GetRefused() == nil {
			t.Errorf("%s: it is told %v", what, answer)
		}
	}
}

// TestReplayedTransfer: the opening of a transfer that was recorded opens nothing once that is over,
// however it ended, and nothing in another session of the same owner; and state that has come is
// not changed by it.
func TestReplayedTransfer(t *testing.T) {
	over := leasehold.Errorf(opReceive, leasehold.ErrClosed, "", "the move is over")
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		s := r.serve(t)
		i := expect(s, testTicket, nil)
		if err := send(r.transfer(t), []string{"new"}); err != nil {
			t.Fatal(err)
		}
		<-i.done
		// Confirmed, and not forgotten yet: the source may not have heard that it was.
		again := r.stream(opened(t, asIs), t, chunk(1, "old", 3), chunk(2, "old", 3))
		if answer, err := again.Recv(); err != nil || answer.GetAccepted() == nil {
			t.Fatalf("a source that comes again is told %v, %v", answer, err)
		}
		if answer, err := again.Recv(); err != nil || answer.GetTaken() == nil {
			t.Errorf("it is told %v, %v", answer, err)
		}
		synctest.Wait()
		if got := i.has(); len(got) != 1 || got[0] != "new" {
			t.Errorf("the state has become %q", got)
		}
		i.in.Close(over)
		r.wantRefused(t, "when the move is over", codes.PermissionDenied, asIs)

		begun := false
		failed := s.Expect(protocol.Ticket{7}, "", func(in *Incoming) { begun = true; in.Release() })
		failed.Close(over)
		r.wantRefused(t, "of a move that came to nothing", codes.PermissionDenied, func(o *leaseholdv1.TransferOpening) { o.Ticket = make([]byte, 16); o.Ticket[0] = 7 })
		if begun {
			t.Error("a move that is over has begun")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		restarted := Serve(r.listener, ServerConfig{Namespace: "presence", Session: leasehold.Session{9}, Idle: testIdle, Credentials: insecure.NewCredentials(), Logger: slog.New(slog.DiscardHandler)})
		defer restarted.Close()
		i := expect(restarted, testTicket, nil) // even if the same ticket were drawn again
		r.wantRefused(t, "to the next session", codes.FailedPrecondition, asIs)
		if i.in.begun {
			t.Error("the transfer has begun")
		}
	})
}
