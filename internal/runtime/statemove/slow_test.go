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

// The idle timeout does not fire for a source that sends records steadily without filling a
// chunk.
func TestSlowExporter(t *testing.T) {
	for _, pause := range []time.Duration{time.Second, testIdle - 2*time.Second} {
		t.Run(pause.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFakeNetwork()
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
					t.Errorf("received (-want +got):\n%.1000s", diff)
				}
			})
		})
	}
}

// Small records are sent in one chunk.
func TestSmallRecordsAreBatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		i := expect(r.serve(t), testTicket, nil)
		o := r.transfer(t)
		for range 1000 {
			if err := o.Send([]byte("a")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(maxLinger)
		synctest.Wait()
		if got := i.in.taken; len(i.has()) != 1000 || got != 1 {
			t.Errorf("%d records received in %d chunks", len(i.has()), got)
		}
	})
}

// A batch that has waited for maxLinger with a full window is sent by the ack that makes room, without a
// call of the application.
func TestLingeringBatchIsSentOnAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		gate := make(chan struct{})
		i := expect(r.serve(t), testTicket, gate)
		o := r.transfer(t)
		const size = maxChunk - recordOverhead
		want := append(slices.Repeat([]string{strings.Repeat("x", size)}, Window/maxChunk), "the last")
		for _, record := range want {
			if err := o.Send([]byte(record)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * maxLinger)
		close(gate)
		time.Sleep(maxLinger / 2)
		if got := len(i.has()); got != len(want) {
			t.Errorf("%d of %d records received", got, len(want))
		}
	})
}

// fickle is a target that accepts every stream and ends it.
type fickle struct {
	leaseholdv1.UnimplementedMoverServiceServer
}

func (fickle) Transfer(stream grpc.BidiStreamingServer[leaseholdv1.TransferRequest, leaseholdv1.TransferResponse]) error {
	return errors.Join(stream.Send(accepted(wire.Version, 1)), status.Error(codes.Unavailable, "gone"))
}

// An accepted stream that breaks is no progress.
func TestBrokenStreamsAreNoProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
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
			t.Errorf("no failure after %v", 10*testIdle)
		}
	})
}
