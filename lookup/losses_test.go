package lookup_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// A reader collects losses until its context ends.
type reader struct {
	got   []leasehold.Loss
	err   error // the last error of the sequence
	ended chan struct{}
}

func read(losses iter.Seq2[leasehold.Loss, error]) *reader {
	r := &reader{ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		for loss, err := range losses {
			if err != nil {
				r.err = err
				break
			}
			r.got = append(r.got, loss)
		}
	}()
	return r
}

func (r *reader) want(t *testing.T, want ...leasehold.Loss) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, r.got); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}
}

func TestLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		l := g.open(g.config("m"))
		ctx, cancel := context.WithCancel(t.Context())
		early := read(l.Losses(ctx))
		m.push(t, 1, 3)
		early.want(t, lossOfLower)

		late := read(l.Losses(ctx))
		m.push(t, 3, 5)
		early.want(t, lossOfLower, lossOfUpper)
		late.want(t, lossOfUpper)
		cancel()
		<-early.ended
		<-late.ended
		if !errors.Is(early.err, context.Canceled) {
			t.Errorf("losses end with %v", early.err)
		}
	})
}

// When OnLoss is called, the table contains the change that recorded the loss.
func TestLossesFollowTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		cfg := g.config("m")
		var lsns []leasehold.LSN
		reported := make(chan leasehold.Loss, 1)
		cfg.OnLoss = func(losses []leasehold.Loss) {
			for _, loss := range losses {
				reported <- loss
			}
		}
		l := g.open(cfg)
		m.push(t, 1, 2)
		m.push(t, 2, 3)
		m.push(t, 3, 4)
		for range 2 {
			loss := <-reported
			if l.LSN() < loss.LSN {
				t.Errorf("%v is reported at lsn %d", loss, l.LSN())
			}
			lsns = append(lsns, loss.LSN)
		}
		if diff := cmp.Diff([]leasehold.LSN{2, 4}, lsns); diff != "" {
			t.Errorf("losses (-want +got):\n%s", diff)
		}
	})
}

func TestLossesSince(t *testing.T) {
	fromTable := leasehold.Loss{Range: lower, LSN: 2, Resume: 2} // without owner and cause
	for _, c := range []struct {
		name   string
		opened int // LSN of the first table
		keep   int
		since  leasehold.LSN
		want   []leasehold.Loss
	}{
		{"from the first table", 1, 10, 1, []leasehold.Loss{lossOfLower, lossOfUpper}},
		{"from the first loss", 1, 10, 2, []leasehold.Loss{lossOfUpper}},
		{"from between losses", 1, 10, 3, []leasehold.Loss{lossOfUpper}},
		{"from the current lsn", 1, 10, 5, nil},
		{"from a future lsn", 1, 10, 9, nil},
		{"from before Open", 3, 10, 1, []leasehold.Loss{fromTable, {Range: upper, LSN: 4, Resume: 4}}},
		{"from before the log", 1, 1, 1, []leasehold.Loss{fromTable, {Range: upper, LSN: 4, Resume: 4}}},
		{"from the start of the log", 1, 1, 2, []leasehold.Loss{lossOfUpper}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				m := g.start("m", c.opened)
				cfg := g.config("m")
				cfg.KeepLosses = c.keep
				l := g.open(cfg)
				for lsn := c.opened; lsn < 5; lsn++ {
					m.push(t, lsn, lsn+1)
					synctest.Wait()
				}
				read(l.LossesSince(t.Context(), c.since)).want(t, c.want...)
				for _, key := range []leasehold.Key{7, half} {
					want := slices.ContainsFunc(c.want, func(loss leasehold.Loss) bool { return loss.Range.Contains(key) })
					if got := l.LostSince(key, c.since); got != want {
						t.Errorf("LostSince(%v, %d) is %v", key, c.since, got)
					}
				}
			})
		})
	}
}

// A slow reader receives the ranges of the dropped losses from the table, and then the losses in the log.
func TestSlowReaderMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		cfg := g.config("m")
		cfg.KeepLosses, cfg.ConservativeRecovery = 1, true
		l := g.open(cfg)
		next, stop := iter.Pull2(l.Losses(t.Context()))
		defer stop()
		m.push(t, 1, 3)
		if loss, _, _ := next(); loss != lossOfLower {
			t.Errorf("the first loss is %v", loss)
		}
		m.push(t, 3, 4)
		synctest.Wait()
		if !l.Ready() {
			t.Error("the lookup is not ready although the manager replies")
		}
		m.stopReplying()
		elapse(40 * time.Second) // the loss of contact replaces the loss in the log
		if l.Ready() {
			t.Error("the lookup is ready although no manager has replied for longer than Stale")
		}
		began := time.Now()
		for _, want := range []leasehold.Loss{
			{Range: upper, LSN: 4, Resume: 4},
			{Range: leasehold.All, Cause: leasehold.CauseContact, LSN: 4, Resume: 4},
		} {
			if loss, _, _ := next(); loss != want {
				t.Errorf("got %v, want %v", loss, want)
			}
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the slow reader waited for %v", waited)
		}
	})
}

// A snapshot contains losses in the order of keys; they are reported in the order of LSN.
func TestLossesOfSkippedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		l := g.open(g.config("m"))
		r := read(l.Losses(t.Context()))
		changes := slices.Clone(history)
		changes[1].Range, changes[2].Range, changes[3].Range, changes[4].Range = upper, upper, lower, lower
		a := m.reply(0, 0, 5)
		a.GetUpdate().Table = wire.FromTable(after(changes, 5))
		m.send(t, a)
		r.want(t,
			leasehold.Loss{Range: upper, Owner: "a", Generation: 1, LSN: 2, Resume: 2},
			leasehold.Loss{Range: lower, Owner: "a", Generation: 1, LSN: 4, Resume: 4})
	})
}

// A sequence starts at the LSN of the call, even if it is read later, and may be
// read again.
func TestLossesStartAtCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		l := g.open(g.config("m"))
		losses := l.Losses(t.Context())
		m.push(t, 1, 3)
		synctest.Wait()
		for range 2 {
			for loss, err := range losses {
				if loss != lossOfLower || err != nil {
					t.Errorf("got %v: %v", loss, err)
				}
				break
			}
		}
	})
}
