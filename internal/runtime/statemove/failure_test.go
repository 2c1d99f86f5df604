package statemove

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// fails waits for a transfer to fail, and returns how long it took and why.
func fails(o *Outgoing) (time.Duration, error) {
	begun := time.Now()
	<-o.Context().Done()
	return time.Since(begun), context.Cause(o.Context())
}

// A source that is not expected is turned away. One that may be expected yet comes
// again until its time is over.
func TestStrangersAreTurnedAway(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*Departure)
		kind  leasehold.Kind
		says  string
		wait  time.Duration
	}{
		"ticket":    {func(d *Departure) { d.Ticket[15]++ }, leasehold.ErrUnavailable, "no leader has announced this move here", testIdle},
		"no ticket": {func(d *Departure) { d.Ticket = protocol.Ticket{} }, leasehold.ErrUnavailable, "no leader has announced this move here", testIdle},
		"session":   {func(d *Departure) { d.Session[0]++ }, leasehold.Other, "meant for another process", 0},
		"namespace": {func(d *Departure) { d.Namespace = "other" }, leasehold.Other, "meant for another process", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoad()
				i := expect(r.serve(t), testTicket, nil)
				d := r.departure()
				test.spoil(&d)
				o := Open(t.Context(), d)
				defer o.Close()
				took, err := fails(o)
				wantError(t, err, test.kind, "target:1", test.says)
				if took != test.wait {
					t.Errorf("it took %v, want %v", took, test.wait)
				}
				if i.in.begun {
					t.Error("the transfer has begun")
				}
			})
		})
	}
}

// The target may hear of a move later than the source.
func TestSourceMayComeEarly(t *testing.T) {
	for late, most := range map[time.Duration]time.Duration{ticketWait - 1: 0, 3 * ticketWait: mostBackoff} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoad()
			s := r.serve(t)
			o := r.transfer(t)
			time.Sleep(late)
			expect(s, testTicket, nil)
			begun := time.Now()
			if err := send(o, []string{"a"}); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took > most {
				t.Errorf("it took another %v", took)
			}
		})
	}
}

// The source hears why its state is not wanted, whenever that is decided.
func TestRefusal(t *testing.T) {
	full := leasehold.Errorf("import", leasehold.ErrLimit, "users", "no room for 7 more")
	for name, refuse := range map[string]func(*road, *importer){
		"before it comes":     func(_ *road, i *importer) { i.in.Refuse(full) },
		"while it sends":      func(_ *road, i *importer) { synctest.Wait(); i.in.Refuse(full) },
		"while it is away":    func(r *road, i *importer) { synctest.Wait(); r.cut(true); i.in.Refuse(full); r.cut(false) },
		"and is then ignored": func(_ *road, i *importer) { synctest.Wait(); i.in.Close(full) },
		"only once": func(_ *road, i *importer) {
			synctest.Wait()
			i.in.Refuse(full)
			i.in.Close(errors.New("something else"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoad()
				i := expect(r.serve(t), testTicket, make(chan struct{}))
				if name == "before it comes" {
					refuse(r, i)
				}
				o := r.transfer(t)
				if err := o.Send([]byte("a")); err != nil {
					t.Fatal(err)
				}
				if name != "before it comes" {
					refuse(r, i)
				}
				err := o.Finish()
				wantError(t, err, leasehold.ErrLimit, "target:1", "no room for 7 more")
				again := o.Send([]byte("b"))
				wantError(t, again, leasehold.ErrLimit, "no room for 7 more")
			})
		})
	}
}

// The source counts on what was confirmed: whatever it or anybody says after that,
// and whatever the clock says, it stays confirmed until the owner is done with it.
func TestConfirmedIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		i := expect(r.serve(t), testTicket, nil)
		stream := r.stream(opened(t, asIs), t, end(1))
		<-i.done
		for _, nonsense := range []*leaseholdv1.TransferRequest{{}, chunk(7, "a", 1), end(1)} {
			if err := stream.Send(nonsense); err != nil {
				t.Fatal(err)
			}
		}
		i.in.Refuse(errors.New("too late"))
		time.Sleep(2 * testIdle)
		if err := i.in.Context().Err(); err != nil {
			t.Fatalf("it has ended: %v", context.Cause(i.in.Context()))
		}
		again := r.stream(opened(t, asIs), t)
		for _, what := range []string{"accepted", "confirmed"} {
			answer, err := again.Recv()
			if err != nil || what == "accepted" && answer.GetAccepted() == nil || what == "confirmed" && answer.GetConfirmed() == nil {
				t.Fatalf("hears %v, %v, want %s", answer, err, what)
			}
		}
		over := leasehold.Errorf("move", leasehold.ErrClosed, "", "the move is over")
		i.in.Close(over)
		if err := context.Cause(i.in.Context()); !errors.Is(err, over) {
			t.Errorf("closed, and ended with %v", err)
		}
		if i.in.Confirm() {
			t.Error("confirmed after it has ended")
		}
	})
}

// Whoever hangs, both sides give up in the end, and say who it was.
func TestNoProgress(t *testing.T) {
	for name, test := range map[string]struct {
		act        func(*road, *Outgoing)
		gate       chan struct{} // an importer that waits for it hangs
		here, away string
	}{
		"exporter": {func(*road, *Outgoing) {}, nil, "this side's application sends nothing", "the source sends nothing"},
		"importer": {
			func(_ *road, o *Outgoing) { _ = o.Send([]byte("a")); go func() { _ = o.Finish() }() },
			make(chan struct{}),
			"takes nothing in", "takes nothing in",
		},
		"connection": {
			func(r *road, o *Outgoing) { _ = o.Send([]byte("a")); r.cut(true); go func() { _ = o.Finish() }() },
			nil,
			"there is no connection", "the source sends nothing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoad()
				if test.gate != nil {
					test.gate = make(chan struct{}) // one of this bubble
				}
				i := expect(r.serve(t), testTicket, test.gate)
				o := r.transfer(t)
				synctest.Wait()
				test.act(r, o)
				took, err := fails(o)
				if leasehold.KindOf(err) != leasehold.ErrUnavailable || took != testIdle {
					t.Errorf("after %v: %v", took, err)
				}
				synctest.Wait()
				why := context.Cause(i.in.Context())
				if why == nil {
					t.Fatal("the target has not given up")
				}
				// Whoever was first has told the other.
				for _, err := range []error{err, why} {
					if says := err.Error(); !strings.Contains(says, test.here) && !strings.Contains(says, test.away) {
						t.Errorf("does not say %q or %q: %v", test.here, test.away, err)
					}
				}
			})
		})
	}
}

// A target that nobody reaches.
func TestNoTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.cut(true)
		o := r.transfer(t)
		took, err := fails(o)
		wantError(t, err, leasehold.ErrUnavailable, "target:1", "the road is closed")
		if took != testIdle {
			t.Errorf("it took %v", took)
		}
	})
}

// An importer that does not read everything has not taken the state in.
func TestIncompleteImport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		s := r.serve(t)
		verdict := make(chan error, 1)
		s.Expect(testTicket, "", func(in *Incoming) {
			go func() {
				defer in.Release()
				for range in.Records() {
					break
				}
				synctest.Wait()
				verdict <- in.Complete()
			}()
		})
		o := r.transfer(t)
		go func() { _ = send(o, []string{"a", "b"}) }()
		wantError(t, <-verdict, leasehold.ErrInvalid, "not all records have been read")
	})
}

// What ends the context of the source's side ends the transfer.
func TestOutgoingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		r.serve(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		o := Open(ctx, r.departure())
		defer o.Close()
		cancel(leasehold.ErrNotFound)
		if err := o.Finish(); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("finished with %v", err)
		}
	})
}

// A server that closes tells its sources, and ends what it has begun.
func TestServerClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		s := r.serve(t)
		i := expect(s, testTicket, nil)
		o := r.transfer(t)
		synctest.Wait()
		s.Close()
		took, err := fails(o)
		wantError(t, err, leasehold.ErrClosed, "this owner is shutting down")
		if took != 0 {
			t.Errorf("it took %v", took)
		}
		<-i.done
		wantError(t, i.err, leasehold.ErrClosed)
	})
}

// An end that differs from what has come is not believed.
func TestChecksum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad()
		i := expect(r.serve(t), testTicket, nil)
		o := r.transfer(t)
		if err := o.Send([]byte("a")); err != nil {
			t.Fatal(err)
		}
		o.batch.data[0] = 'b' // a bit has flipped
		wantError(t, o.Finish(), leasehold.ErrInternal, "1 records of 1 bytes with checksum")
		<-i.done
		wantError(t, i.err, leasehold.ErrInternal)
	})
}
