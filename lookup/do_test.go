package lookup_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A server returns the errors of its script in order, and then succeeds.
type server struct {
	script []error
	calls  []string
}

func (s *server) call(_ context.Context, addr string) error {
	s.calls = append(s.calls, addr)
	if len(s.script) == 0 {
		return nil
	}
	err := s.script[0]
	s.script = s.script[1:]
	return err
}

func TestDo(t *testing.T) {
	mine := errors.New("application error")
	notOwner := leasehold.Errorf("add", leasehold.ErrNotOwner, "7", "lease is gone")
	down := status.Error(codes.Unavailable, "connection refused")
	for _, c := range []struct {
		name    string
		script  []error
		options []lookup.DoOption
		calls   int
		want    error // nil: done
	}{
		{"success", nil, nil, 1, nil},
		{"not the owner", []error{notOwner, notOwner}, nil, 3, nil},
		{"not the owner, as a kind", []error{leasehold.ErrNotOwner}, nil, 2, nil},
		{"not the owner, over gRPC", []error{wire.FromError(notOwner)}, nil, 2, nil},
		{"suspended", []error{leasehold.ErrSuspended, leasehold.ErrSuspended}, nil, 3, nil},
		{"suspended, over gRPC", []error{wire.FromError(leasehold.ErrSuspended)}, nil, 2, nil},
		{"suspended, attempts used up", []error{leasehold.ErrSuspended, leasehold.ErrSuspended}, []lookup.DoOption{lookup.WithAttempts(2)}, 2, leasehold.ErrSuspended},
		{"no owner, over gRPC", []error{wire.FromError(leasehold.ErrNoOwner)}, nil, 2, nil},
		{"the application's error", []error{mine}, nil, 1, mine},
		{"invalid", []error{leasehold.ErrInvalid}, []lookup.DoOption{lookup.WithIdempotent()}, 1, leasehold.ErrInvalid},
		{"unavailable", []error{leasehold.ErrUnavailable}, nil, 1, leasehold.ErrUnavailable},
		{"unavailable, over gRPC", []error{down}, nil, 1, down},
		{"indeterminate, over gRPC", []error{down}, nil, 1, leasehold.ErrIndeterminate},
		{"indeterminate, then refused", []error{down, notOwner}, []lookup.DoOption{lookup.WithIdempotent(), lookup.WithAttempts(2)}, 2, leasehold.ErrIndeterminate},
		{"unavailable, idempotent", []error{down, leasehold.ErrUnavailable}, []lookup.DoOption{lookup.WithIdempotent()}, 3, nil},
		{"attempts used up", []error{notOwner, notOwner, notOwner}, []lookup.DoOption{lookup.WithAttempts(3)}, 3, notOwner},
		{"at least once", []error{notOwner}, []lookup.DoOption{lookup.WithAttempts(0)}, 1, notOwner},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				g.start("m", 1)
				l := g.open(g.config("m"))
				s := &server{script: c.script}
				err := l.Do(t.Context(), 7, s.call, c.options...)
				if !errors.Is(err, c.want) || len(s.calls) != c.calls {
					t.Errorf("after %d calls: %v; want %d and %v", len(s.calls), err, c.calls, c.want)
				}
			})
		})
	}
}

// Errors that are unrelated to ownership are returned unchanged.
func TestDoReturnsErrorsUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("m", 1)
		l := g.open(g.config("m"))
		mine := status.Error(codes.FailedPrecondition, "application error")
		if err := l.Do(t.Context(), 7, (&server{script: []error{mine}}).call); err != mine { //nolint:errorlint // identity
			t.Errorf("got %v", err)
		}
	})
}

func TestDoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("m", 1)
		l := g.open(g.config("m"))
		began := time.Now()
		calls := 0
		err := l.Do(t.Context(), 7, func(context.Context, string) error {
			calls++
			return leasehold.ErrNotOwner
		})
		const want = `do "0000000000000007": gave up after 40 attempts: not the owner`
		if calls != 40 || !errors.Is(err, leasehold.ErrNotOwner) || err.Error() != want {
			t.Errorf("after %d calls: %v", calls, err)
		}
		// Forty attempts have 39 backoffs: 1.02 s together, then 30 times 1 s, minus up to a
		// half.
		if took := time.Since(began); took < 15*time.Second || took > 34*time.Second {
			t.Errorf("Do took %v", took)
		}
	})
}

// Do retries at a server with a suspended lease until the context's deadline. Without a
// deadline the usual number of attempts applies.
func TestDoRetriesSuspendedUntilDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("m", 1)
		l := g.open(g.config("m"))
		suspended := func(context.Context, string) error { return leasehold.ErrSuspended }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		if err := l.Do(ctx, 7, suspended); !errors.Is(err, leasehold.ErrSuspended) || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Hour {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		began = time.Now()
		if err := l.Do(t.Context(), 7, suspended); !errors.Is(err, leasehold.ErrSuspended) || time.Since(began) > time.Minute {
			t.Errorf("without a deadline, after %v: %v", time.Since(began), err)
		}
		if err := l.Do(ctx, 7, suspended, lookup.WithAttempts(3)); !strings.Contains(err.Error(), "gave up after 1 attempt") {
			t.Errorf("with an expired context: %v", err)
		}
	})
}

func TestDoEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("m", 2) // key 7 has no owner
		l := g.open(g.config("m"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := l.Do(ctx, 7, func(context.Context, string) error {
			t.Error("Do called f without an owner")
			return nil
		})
		if time.Since(began) != time.Second {
			t.Errorf("Do took %v", time.Since(began))
		}
		if !errors.Is(err, leasehold.ErrNoOwner) || leasehold.KindOf(err) != leasehold.ErrNoOwner || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("kind %v: %v", leasehold.KindOf(err), err)
		}
		if !strings.Contains(err.Error(), "the key has no owner at lsn 2") {
			t.Errorf("the error does not contain the reason: %v", err)
		}
	})
}

// Do calls a new owner as soon as the table changes, before the backoff ends.
func TestDoRetriesAtNewOwner(t *testing.T) {
	for _, c := range []struct {
		name   string
		opened int
	}{{"with a previous owner", 1}, {"without an owner", 2}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				m := g.start("m", c.opened)
				l := g.open(g.config("m"))
				began := time.Now()
				var doneAt time.Duration
				done := make(chan error, 1)
				go func() {
					done <- l.Do(t.Context(), 7, func(_ context.Context, addr string) error {
						if addr == "a:1" {
							return leasehold.ErrNotOwner
						}
						doneAt = time.Since(began)
						return nil
					})
				}()
				const moment = 8*time.Second + 1
				elapse(moment)
				m.push(t, c.opened, 3)
				if err := <-done; err != nil || doneAt != moment {
					t.Errorf("at %v: %v", doneAt, err)
				}
			})
		})
	}
}

// A new owner resets the backoff.
func TestNewOwnerResetsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		l := g.open(g.config("m"))
		const moment = 8 * time.Second
		began := time.Now()
		done := make(chan error, 1)
		tries := 0 // attempts at the new owner; the second succeeds
		go func() {
			done <- l.Do(t.Context(), 7, func(_ context.Context, addr string) error {
				if addr != "a:1" {
					tries++
				}
				if tries < 2 {
					return leasehold.ErrNotOwner
				}
				return nil
			})
		}()
		elapse(moment)
		m.push(t, 1, 3)
		err := <-done
		if took := time.Since(began); err != nil || took > moment+2*time.Millisecond {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// ErrNotOwner makes the lookup request the changes that it missed.
func TestDoRefreshes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		l := g.open(g.config("m"))
		elapse(time.Second)
		m.lead(3) // without a broadcast
		err := l.Do(t.Context(), 7, func(_ context.Context, addr string) error {
			if addr == "a:1" {
				return leasehold.ErrNotOwner
			}
			return nil
		}, lookup.WithAttempts(2))
		if err != nil {
			t.Error(err)
		}
	})
}

func TestDoEndsWithLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("m", 2)
		l := g.open(g.config("m"))
		done := make(chan error, 1)
		go func() { done <- l.Do(t.Context(), 7, (&server{}).call) }()
		elapse(100 * time.Millisecond)
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// An attempt at a server that does not respond ends after its key moved to another server.
func TestDoEndsAttemptAfterItsKeyMoved(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []lookup.DoOption
		calls   []string
		want    error
	}{
		{"idempotent", []lookup.DoOption{lookup.WithIdempotent()}, []string{"a:1", "b:1"}, nil},
		{"not idempotent", nil, []string{"a:1"}, leasehold.ErrIndeterminate},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				m := g.start("m", 1)
				l := g.open(g.config("m"))
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var calls []string
				done := make(chan error, 1)
				go func() {
					done <- l.Do(ctx, 7, func(ctx context.Context, addr string) error {
						if calls = append(calls, addr); addr == "a:1" {
							<-ctx.Done()
							return ctx.Err()
						}
						return nil
					}, c.options...)
				}()
				elapse(10 * time.Second)
				m.push(t, 1, 2) // no owner
				elapse(10 * time.Second)
				if len(done) > 0 {
					t.Error("the attempt ended although the key has no other owner")
				}
				m.push(t, 2, 3)
				moved := time.Now()
				err := <-done
				if took := time.Since(moved); took < time.Second || took > 2*time.Second {
					t.Errorf("the attempt ended %v after the move", took)
				}
				if !errors.Is(err, c.want) || errors.Is(err, context.Canceled) || !slices.Equal(calls, c.calls) {
					t.Errorf("calls of %v, %v; want %v and %v", calls, err, c.calls, c.want)
				}
				if err != nil && !strings.Contains(err.Error(), "the key moved to another server while a:1 did not respond") {
					t.Errorf("the error does not contain the reason: %v", err)
				}
			})
		})
	}
}

// net/http returns the cause of the end of a context, not the error of the context.
func TestDoEndsAttemptOfHTTP(t *testing.T) {
	mine := errors.New("the caller has gone")
	for _, c := range []struct {
		name    string
		options []lookup.DoOption
		calls   []string
		cancel  error // nil: the key moves
		want    error
	}{
		{"the key moves, idempotent", []lookup.DoOption{lookup.WithIdempotent()}, []string{"a:1", "b:1"}, nil, nil},
		{"the key moves", nil, []string{"a:1"}, nil, leasehold.ErrIndeterminate},
		{"the caller cancels", nil, []string{"a:1"}, mine, leasehold.ErrIndeterminate},
		{"the caller cancels, idempotent", []lookup.DoOption{lookup.WithIdempotent()}, []string{"a:1"}, mine, leasehold.ErrIndeterminate},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				m := g.start("m", 1)
				l := g.open(g.config("m"))
				silent, other := net.Pipe() // no server reads from it
				defer func() { _ = other.Close() }()
				transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return silent, nil }}
				defer transport.CloseIdleConnections()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				var calls []string
				done := make(chan error, 1)
				go func() {
					done <- l.Do(ctx, 7, func(ctx context.Context, addr string) error {
						if calls = append(calls, addr); addr != "a:1" {
							return nil
						}
						request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr, http.NoBody) // it is valid
						response, err := (&http.Client{Transport: transport}).Do(request)
						if err == nil {
							_ = response.Body.Close()
						}
						return err
					}, c.options...)
				}()
				elapse(time.Second)
				if c.cancel == nil {
					m.push(t, 1, 3)
				} else {
					cancel(c.cancel)
				}
				if err := <-done; !errors.Is(err, c.want) || !slices.Equal(calls, c.calls) {
					t.Errorf("calls of %v, %v; want %v and %v", calls, err, c.calls, c.want)
				}
			})
		})
	}
}

// The end of an outer attempt is not a move of the key of an inner call.
func TestInnerDoEndsWithOuterAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		l := g.open(g.config("m"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		inner := make(chan error, 1)
		go func() {
			_ = l.Do(ctx, 7, func(outer context.Context, _ string) error {
				inner <- l.Do(outer, half, func(ctx context.Context, _ string) error {
					<-ctx.Done()
					return ctx.Err()
				})
				return nil
			})
		}()
		elapse(time.Second)
		m.push(t, 1, 3) // the lower half moves, the upper half stays
		err := <-inner
		if leasehold.KindOf(err) != leasehold.ErrIndeterminate || !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "moved") {
			t.Errorf("got %v", err)
		}
	})
}

// A result of the previous owner is returned unchanged, even if the attempt has ended.
func TestDoReturnsResultsAfterTheMoveUnchanged(t *testing.T) {
	for _, want := range []error{nil, errors.New("application error"), leasehold.ErrInvalid} {
		synctest.Test(t, func(t *testing.T) {
			g := newGroup(t)
			m := g.start("m", 1)
			l := g.open(g.config("m"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			done := make(chan error, 1)
			go func() {
				done <- l.Do(ctx, 7, func(ctx context.Context, _ string) error {
					<-ctx.Done()
					return want
				}, lookup.WithIdempotent())
			}()
			elapse(time.Second)
			m.push(t, 1, 3)
			if err := <-done; err != want || ctx.Err() != nil { //nolint:errorlint // identity
				t.Errorf("got %v, want %v; the caller's context: %v", err, want, ctx.Err())
			}
		})
	}
}
