package statemove

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A source that sends little, but steadily, is not taken for one that hangs,
// although it does not fill a chunk in all that time.
func TestSlowExporter(t *testing.T) {
	for _, pause := range []time.Duration{time.Second, testIdle - 2*time.Second} {
		t.Run(pause.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoad()
				i := expect(r.serve(t), testTicket, nil)
				o := r.transfer(t)
				want := numbered(int(4*testIdle/pause), 10)
				for n, record := range want {
					if err := o.Send([]byte(record)); err != nil {
						t.Fatalf("record %d: %v", n, err)
					}
					time.Sleep(pause)
				}
				if err := o.Finish(); err != nil {
					t.Fatal(err)
				}
				<-i.done
				if diff := cmp.Diff(want, i.has()); diff != "" {
					t.Errorf("arrived (-want +got):\n%.1000s", diff)
				}
			})
		})
	}
}

// Small records travel together if they come fast.
func TestSmallRecordsAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		i := expect(r.serve(t), testTicket, nil)
		o := r.transfer(t)
		for range 1000 {
			if err := o.Send([]byte("a")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(longestLinger)
		synctest.Wait()
		if got := i.in.taken; len(i.has()) != 1000 || got != 1 {
			t.Errorf("%d records have come, in %d chunks", len(i.has()), got)
		}
	})
}

// What could not be sent when its time came is sent when there is room, although
// the source's application does nothing.
func TestOverdueRecordsGoWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		gate := make(chan struct{})
		i := expect(r.serve(t), testTicket, gate)
		o := r.transfer(t)
		const size = maxChunk - perRecord
		want := append(slices.Repeat([]string{strings.Repeat("x", size)}, Window/maxChunk), "the last")
		for _, record := range want {
			if err := o.Send([]byte(record)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * longestLinger)
		close(gate)
		time.Sleep(longestLinger / 2)
		if got := len(i.has()); got != len(want) {
			t.Errorf("%d of %d records have come", got, len(want))
		}
	})
}

// fickle is a target that lets everybody in and hangs up.
type fickle struct {
	leaseholdv1.UnimplementedMoverServiceServer
}

func (fickle) Transfer(stream grpc.BidiStreamingServer[leaseholdv1.TransferRequest, leaseholdv1.TransferResponse]) error {
	return errors.Join(stream.Send(accepted(wire.Version, 1)), status.Error(codes.Unavailable, "gone"))
}

// A stream that is let in and breaks again each time is no progress.
func TestBrokenStreamsAreNoProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		server := grpc.NewServer(serverOptions()...)
		defer server.Stop()
		leaseholdv1.RegisterMoverServiceServer(server, fickle{})
		go func() { _ = server.Serve(r.listener) }()
		o := r.transfer(t)
		defer o.Close()
		settled := make(chan error, 1)
		go func() { settled <- errors.Join(o.Send([]byte("a")), o.Settle()) }()
		select {
		case err := <-settled:
			wantError(t, err, leasehold.ErrUnavailable, "no progress for 30s", "gone")
		case <-time.After(10 * testIdle):
			t.Errorf("it has not failed in %v", 10*testIdle)
		}
	})
}
