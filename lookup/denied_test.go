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

var errAccessDenied = leasehold.Errorf("follow", leasehold.ErrDenied, "n", "access denied by test")

func TestOpenWithoutPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("a", 1).deny()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		_, err := lookup.Open(ctx, g.config("a"))
		if leasehold.KindOf(err) != leasehold.ErrDenied || !strings.Contains(err.Error(), "access denied by test") {
			t.Errorf("%v (%v)", err, leasehold.KindOf(err))
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("Open took %v", took)
		}
	})
}

// A lookup whose permission is revoked keeps its table, logs the denial
// once for each manager, and sends no more requests than usual.
func TestPermissionRevokedAfterOpen(t *testing.T) {
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
			t.Errorf("%d denials in a minute", denied)
		}
		if _, ok := l.Find(1); !ok {
			t.Error("the lookup has dropped its table")
		}
		synctest.Wait()
		if lines := strings.Count(log.String(), "does not permit"); lines != len(managers) {
			t.Errorf("%d log lines about the denial:\n%s", lines, &log)
		}
	})
}

// deny makes the manager deny every request.
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

// checkAccess returns an error after deny.
func (m *manager) checkAccess() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.denies {
		return nil
	}
	m.denied++
	return wire.FromError(errAccessDenied)
}

// While Open waits, the log contains one line about the managers, which do not reply.
func TestOpenLogsSilentManagers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		var log bytes.Buffer
		cfg := g.config("a", "b")
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := lookup.Open(ctx, cfg); err == nil {
			t.Fatal("Open succeeds without a manager")
		}
		if lines := strings.Count(log.String(), "level=WARN"); lines != 1 || !strings.Contains(log.String(), "no manager answers") {
			t.Errorf("%d warnings, want one about the managers:\n%s", lines, &log)
		}
	})
}

// One manager with an older access file does not prevent Open at another.
func TestOpenIfOneManagerDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 10 { // the first manager is random
			g := newGroup(t)
			g.start("a", 1).deny()
			g.start("b", 1)
			l := g.open(g.config("a", "b"))
			_ = l.Close(context.Background())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if _, err := lookup.Open(ctx, g.config("a", "unreachable")); leasehold.KindOf(err) != leasehold.ErrDenied || ctx.Err() != nil {
				t.Errorf("with an unreachable second manager: %v", err)
			}
			cancel()
		}
	})
}
