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
	err   error // why it ended
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

// When a loss is heard of, the table already knows what came after it, however
// many changes come at once.
func TestLossesFollowTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		cfg := g.config("m")
		var lsns []leasehold.LSN
		told := make(chan leasehold.Loss, 1)
		cfg.OnLoss = func(losses []leasehold.Loss) {
			for _, loss := range losses {
				told <- loss
			}
		}
		l := g.open(cfg)
		m.push(t, 1, 2)
		m.push(t, 2, 3)
		m.push(t, 3, 4)
		for range 2 {
			loss := <-told
			if l.LSN() < loss.LSN {
				t.Errorf("heard of %v at lsn %d", loss, l.LSN())
			}
			lsns = append(lsns, loss.LSN)
		}
		if diff := cmp.Diff([]leasehold.LSN{2, 4}, lsns); diff != "" {
			t.Errorf("losses (-want +got):\n%s", diff)
		}
	})
}

func TestLossesSince(t *testing.T) {
	fromTable := leasehold.Loss{Range: lower, LSN: 2, Resume: 2} // nobody knows any more who had it
	for _, c := range []struct {
		name   string
		opened int // the table that it started with
		keep   int
		since  leasehold.LSN
		want   []leasehold.Loss
	}{
		{"from its first table", 1, 10, 1, []leasehold.Loss{lossOfLower, lossOfUpper}},
		{"from one loss to the next", 1, 10, 2, []leasehold.Loss{lossOfUpper}},
		{"from between losses", 1, 10, 3, []leasehold.Loss{lossOfUpper}},
		{"from now", 1, 10, 5, nil},
		{"from what it does not know yet", 1, 10, 9, nil},
		{"from before it was opened", 3, 10, 1, []leasehold.Loss{fromTable, {Range: upper, LSN: 4, Resume: 4}}},
		{"from before what it keeps", 1, 1, 1, []leasehold.Loss{fromTable, {Range: upper, LSN: 4, Resume: 4}}},
		{"from what it keeps", 1, 1, 2, []leasehold.Loss{lossOfUpper}},
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

// A reader that is too slow is told where state was lost, and goes on from
// there with what is kept.
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
			t.Errorf("the first is %v", loss)
		}
		m.push(t, 3, 4)
		synctest.Wait()
		if !l.Ready() {
			t.Error("it is not ready, although it knows everything")
		}
		m.fallSilent()
		elapse(40 * time.Second) // contact is lost, and is kept instead
		if l.Ready() {
			t.Error("it is ready, although nobody has answered for longer than Stale")
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
			t.Errorf("it waited for %v until it was told again", waited)
		}
	})
}

// A table that comes as a whole brings losses in the order of keys; they are
// told in the order in which they happened, and each in full.
func TestLossesOfSkippedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		l := g.open(g.config("m"))
		r := read(l.Losses(t.Context()))
		changes := slices.Clone(story)
		changes[1].Range, changes[2].Range, changes[3].Range, changes[4].Range = upper, upper, lower, lower
		a := m.reply(0, 0, 5)
		a.GetUpdate().Table = wire.FromTable(after(changes, 5))
		m.send(t, a)
		r.want(t,
			leasehold.Loss{Range: upper, Owner: "a", Generation: 1, LSN: 2, Resume: 2},
			leasehold.Loss{Range: lower, Owner: "a", Generation: 1, LSN: 4, Resume: 4})
	})
}

// A sequence starts where it was asked for, however late it is read, and may be
// read again.
func TestLossesStartWhenAskedFor(t *testing.T) {
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
