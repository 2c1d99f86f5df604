package lookup_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lookup"
)

var errNotForYou = leasehold.Errorf("follow", leasehold.ErrDenied, "n", "not for you")

func TestOpenOfWhatIsNotPermitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("a", 1).deny()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		_, err := lookup.Open(ctx, g.config("a"))
		if leasehold.KindOf(err) != leasehold.ErrDenied || !strings.Contains(err.Error(), "not for you") {
			t.Errorf("%v (%v)", err, leasehold.KindOf(err))
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A lookup that may not follow any more goes on with the table that it has, says so
// once for each manager, and asks no more often than it polls.
func TestLookupThatIsNotPermittedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		managers := []*manager{g.start("a", 1), g.start("b", 1)}
		var log bytes.Buffer
		cfg := g.config("a", "b")
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		l := g.open(cfg)
		for _, m := range managers {
			m.deny()
		}
		time.Sleep(time.Minute)
		denied := 0
		for _, m := range managers {
			denied += m.deniedTimes()
		}
		if denied < 6 || denied > 60 {
			t.Errorf("it was denied %d times in a minute", denied)
		}
		if _, ok := l.Find(1); !ok {
			t.Error("it has forgotten its table")
		}
		synctest.Wait()
		if said := strings.Count(log.String(), "does not permit"); said != len(managers) {
			t.Errorf("it says so %d times:\n%s", said, &log)
		}
	})
}

// deny has the manager end every stream with the next question.
func (m *manager) deny() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.denies = true
}

func (m *manager) deniedTimes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.denied
}

// barred refuses a question, if that is what the manager does.
func (m *manager) barred() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.denies {
		return nil
	}
	m.denied++
	return wire.FromError(errNotForYou)
}

// Whoever waits for a table that does not come finds in the log what it waits for, once for
// each manager.
func TestOpenSaysWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		var log bytes.Buffer
		cfg := g.config("a", "b")
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := lookup.Open(ctx, cfg); err == nil {
			t.Fatal("it is open, and there is no manager")
		}
		if said := strings.Count(log.String(), "has not answered yet"); said != 2 {
			t.Errorf("it says so %d times:\n%s", said, &log)
		}
	})
}

// A manager whose access file is older than the others' keeps nobody from being served by
// another.
func TestOpenWhereOneDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 10 { // whom it asks first is drawn
			g := newGroup(t)
			g.start("a", 1).deny()
			g.start("b", 1)
			l := g.open(g.config("a", "b"))
			_ = l.Close(context.Background())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if _, err := lookup.Open(ctx, g.config("a", "nobody")); leasehold.KindOf(err) != leasehold.ErrDenied || ctx.Err() != nil {
				t.Errorf("where the other does not answer: %v", err)
			}
			cancel()
		}
	})
}
