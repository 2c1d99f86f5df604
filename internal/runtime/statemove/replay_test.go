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

// wantRefused replays a recorded transfer on a new stream and expects its rejection.
func (r *fakeNetwork) wantRefused(t *testing.T, what string, code codes.Code, change func(*leaseholdv1.TransferOpening)) {
	t.Helper()
	stream := r.stream(openingContext(t, change), t)
	for _, m := range []*leaseholdv1.TransferRequest{chunk(1, "old", 3), end(2)} {
		_ = stream.Send(m) // it is not read
	}
	for {
		reply, err := stream.Recv()
		if err != nil {
			if status.Code(err) != code {
				t.Errorf("%s: the stream ends with %v, want %v", what, err, code)
			}
			return
		}
		if reply.GetRefused() == nil {
			t.Errorf("%s: reply %v", what, reply)
		}
	}
}

// The replay of a recorded transfer is rejected after its end and in another session of the owner. It
// does not change received state.
func TestReplayedTransfer(t *testing.T) {
	over := leasehold.Errorf(opReceive, leasehold.ErrClosed, "", "the move is over")
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		s := r.serve(t)
		i := expect(s, testTicket, nil)
		if err := send(r.transfer(t), []string{"new"}); err != nil {
			t.Fatal(err)
		}
		<-i.done
		// After the confirmation, before Close: the source may not have received the confirmation.
		again := r.stream(openingContext(t, unchanged), t, chunk(1, "old", 3), chunk(2, "old", 3))
		if reply, err := again.Recv(); err != nil || reply.GetAccepted() == nil {
			t.Fatalf("reply to a reconnect: %v, %v", reply, err)
		}
		if reply, err := again.Recv(); err != nil || reply.GetTaken() == nil {
			t.Errorf("second reply: %v, %v", reply, err)
		}
		synctest.Wait()
		if got := i.has(); len(got) != 1 || got[0] != "new" {
			t.Errorf("the state has changed to %q", got)
		}
		i.in.Close(over)
		r.wantRefused(t, "after the end", codes.PermissionDenied, unchanged)

		begun := false
		failed := s.Expect(protocol.Ticket{7}, "", func(in *Incoming) { begun = true; in.Release() })
		failed.Close(over)
		r.wantRefused(t, "after a failed move", codes.PermissionDenied, func(o *leaseholdv1.TransferOpening) { o.Ticket = make([]byte, 16); o.Ticket[0] = 7 })
		if begun {
			t.Error("an ended move has begun")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		restarted := Serve(r.listener, ServerConfig{Namespace: "presence", Session: leasehold.Session{9}, Idle: testIdle, Credentials: insecure.NewCredentials(), Logger: slog.New(slog.DiscardHandler)})
		defer restarted.Close()
		i := expect(restarted, testTicket, nil) // even with the same ticket
		r.wantRefused(t, "to the next session", codes.FailedPrecondition, unchanged)
		if i.in.begun {
			t.Error("the transfer has begun")
		}
	})
}
