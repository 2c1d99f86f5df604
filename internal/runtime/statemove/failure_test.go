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

// awaitFailure returns the time until a transfer fails, and the reason.
func awaitFailure(o *Outgoing) (time.Duration, error) {
	begun := time.Now()
	<-o.Context().Done()
	return time.Since(begun), context.Cause(o.Context())
}

// A source with an unknown ticket retries until its timeout, because the announcement may be late. Another
// session or namespace is a final error.
func TestUnexpectedSourcesAreRejected(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*Departure)
		kind  leasehold.Kind
		text  string
		wait  time.Duration
	}{
		"ticket":    {func(d *Departure) { d.Ticket[15]++ }, leasehold.ErrUnavailable, "no leader has announced it", testIdle},
		"no ticket": {func(d *Departure) { d.Ticket = protocol.Ticket{} }, leasehold.ErrUnavailable, "no leader has announced it", testIdle},
		"session":   {func(d *Departure) { d.Session[0]++ }, leasehold.Other, "for another process", 0},
		"namespace": {func(d *Departure) { d.Namespace = "other" }, leasehold.Other, "for another process", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFakeNetwork()
				i := expect(r.serve(t), testTicket, nil)
				d := r.departure()
				test.spoil(&d)
				o := Open(t.Context(), d)
				defer o.Close()
				took, err := awaitFailure(o)
				wantError(t, err, test.kind, "target:1", test.text)
				if took != test.wait {
					t.Errorf("failed after %v, want %v", took, test.wait)
				}
				if i.in.begun {
					t.Error("the transfer has begun")
				}
			})
		})
	}
}

// The source connects before the target has received the announcement.
func TestSourceMayConnectEarly(t *testing.T) {
	for late, most := range map[time.Duration]time.Duration{ticketWait - 1: 0, 3 * ticketWait: maxBackoff} {
		synctest.Test(t, func(t *testing.T) {
			r := newFakeNetwork()
			s := r.serve(t)
			o := r.transfer(t)
			time.Sleep(late)
			expect(s, testTicket, nil)
			begun := time.Now()
			if err := send(o, []string{"a"}); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took > most {
				t.Errorf("it completed after another %v", took)
			}
		})
	}
}

// The source receives the reason of a refusal in every state.
func TestRefusal(t *testing.T) {
	full := leasehold.Errorf("import", leasehold.ErrLimit, "users", "no room for 7 more")
	for name, refuse := range map[string]func(*fakeNetwork, *importer){
		"before the stream":  func(_ *fakeNetwork, i *importer) { i.in.Refuse(full) },
		"during the stream":  func(_ *fakeNetwork, i *importer) { synctest.Wait(); i.in.Refuse(full) },
		"while disconnected": func(r *fakeNetwork, i *importer) { synctest.Wait(); r.cut(true); i.in.Refuse(full); r.cut(false) },
		"by Close":           func(_ *fakeNetwork, i *importer) { synctest.Wait(); i.in.Close(full) },
		"only once": func(_ *fakeNetwork, i *importer) {
			synctest.Wait()
			i.in.Refuse(full)
			i.in.Close(errors.New("something else"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFakeNetwork()
				i := expect(r.serve(t), testTicket, make(chan struct{}))
				if name == "before the stream" {
					refuse(r, i)
				}
				o := r.transfer(t)
				if err := o.Send([]byte("a")); err != nil {
					t.Fatal(err)
				}
				if name != "before the stream" {
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

// The source relies on the confirmation: later messages, refusals and timeouts have no effect until
// Close.
func TestConfirmedIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		i := expect(r.serve(t), testTicket, nil)
		stream := r.stream(openingContext(t, unchanged), t, end(1))
		<-i.done
		for _, invalid := range []*leaseholdv1.TransferRequest{{}, chunk(7, "a", 1), end(1)} {
			if err := stream.Send(invalid); err != nil {
				t.Fatal(err)
			}
		}
		i.in.Refuse(errors.New("too late"))
		time.Sleep(2 * testIdle)
		if err := i.in.Context().Err(); err != nil {
			t.Fatalf("the transfer has ended: %v", context.Cause(i.in.Context()))
		}
		again := r.stream(openingContext(t, unchanged), t)
		for _, what := range []string{"accepted", "confirmed"} {
			reply, err := again.Recv()
			if err != nil || what == "accepted" && reply.GetAccepted() == nil || what == "confirmed" && reply.GetConfirmed() == nil {
				t.Fatalf("reply %v, %v, want %s", reply, err, what)
			}
		}
		over := leasehold.Errorf("move", leasehold.ErrClosed, "", "the move is over")
		i.in.Close(over)
		if err := context.Cause(i.in.Context()); !errors.Is(err, over) {
			t.Errorf("context after Close: %v", err)
		}
		if i.in.Confirm() {
			t.Error("confirmed after Close")
		}
	})
}

// If either side hangs, both sides fail with the reason after the idle timeout.
func TestNoProgress(t *testing.T) {
	for name, test := range map[string]struct {
		act        func(*fakeNetwork, *Outgoing)
		gate       chan struct{} // makes the importer hang
		here, away string
	}{
		"exporter": {func(*fakeNetwork, *Outgoing) {}, nil, "the exporter of this side sends no records", "the source sends nothing"},
		"importer": {
			func(_ *fakeNetwork, o *Outgoing) { _ = o.Send([]byte("a")); go func() { _ = o.Finish() }() },
			make(chan struct{}),
			"reads no records", "reads no records",
		},
		"connection": {
			func(r *fakeNetwork, o *Outgoing) {
				_ = o.Send([]byte("a"))
				r.cut(true)
				go func() { _ = o.Finish() }()
			},
			nil,
			"no connection", "the source sends nothing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFakeNetwork()
				if test.gate != nil {
					test.gate = make(chan struct{}) // in the synctest bubble
				}
				i := expect(r.serve(t), testTicket, test.gate)
				o := r.transfer(t)
				synctest.Wait()
				test.act(r, o)
				took, err := awaitFailure(o)
				if leasehold.KindOf(err) != leasehold.ErrUnavailable || took != testIdle {
					t.Errorf("after %v: %v", took, err)
				}
				synctest.Wait()
				reason := context.Cause(i.in.Context())
				if reason == nil {
					t.Fatal("the target has not failed")
				}
				// The side that fails first sends its reason to the other.
				for _, err := range []error{err, reason} {
					if text := err.Error(); !strings.Contains(text, test.here) && !strings.Contains(text, test.away) {
						t.Errorf("error %v, want %q or %q", err, test.here, test.away)
					}
				}
			})
		})
	}
}

// The target is unreachable.
func TestUnreachableTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		r.cut(true)
		o := r.transfer(t)
		took, err := awaitFailure(o)
		wantError(t, err, leasehold.ErrUnavailable, "target:1", "the network is down")
		if took != testIdle {
			t.Errorf("failed after %v", took)
		}
	})
}

// Complete fails if the importer has not read all records.
func TestIncompleteImport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		s := r.serve(t)
		finalError := make(chan error, 1)
		s.Expect(testTicket, "", func(in *Incoming) {
			go func() {
				defer in.Release()
				for range in.Records() {
					break
				}
				synctest.Wait()
				finalError <- in.Complete()
			}()
		})
		o := r.transfer(t)
		go func() { _ = send(o, []string{"a", "b"}) }()
		wantError(t, <-finalError, leasehold.ErrInvalid, "transfer incomplete")
	})
}

// The end of the context given to Open ends the transfer.
func TestOutgoingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
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

// Server.Close refuses all transfers, and the sources receive that.
func TestServerClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
		s := r.serve(t)
		i := expect(s, testTicket, nil)
		o := r.transfer(t)
		synctest.Wait()
		s.Close()
		took, err := awaitFailure(o)
		wantError(t, err, leasehold.ErrClosed, "the owner is shutting down")
		if took != 0 {
			t.Errorf("failed after %v", took)
		}
		<-i.done
		wantError(t, i.err, leasehold.ErrClosed)
	})
}

// A wrong checksum fails the transfer on both sides.
func TestChecksum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeNetwork()
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
