package diskless

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/leasehold-dev/leasehold/flease"
	machine "github.com/leasehold-dev/leasehold/internal/machine/flease"
)

// named hands on what package flease logs, with the addresses of managers in place of
// their numbers, which nobody but the group knows.
type named struct {
	slog.Handler
	cfg *Config
}

// Handle implements [slog.Handler].
func (n named) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(n.attr(a))
		return true
	})
	return n.Handler.Handle(ctx, out)
}

// WithAttrs implements [slog.Handler].
func (n named) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = n.attr(a)
	}
	return named{n.Handler.WithAttrs(out), n.cfg}
}

// WithGroup implements [slog.Handler].
func (n named) WithGroup(name string) slog.Handler { return named{n.Handler.WithGroup(name), n.cfg} }

func (n named) attr(a slog.Attr) slog.Attr {
	switch id := a.Value.Any().(type) {
	case flease.ID:
		a.Value = slog.StringValue(n.cfg.manager(id))
	case machine.Process:
		a.Value = slog.StringValue(n.cfg.manager(flease.ID(id)))
	}
	return a
}

// manager names the manager that has a number, or gives the number if it is none of
// the group.
func (c *Config) manager(id flease.ID) string {
	for _, p := range c.Peers {
		if p.id() == id {
			return string(p.Manager)
		}
	}
	return fmt.Sprintf("an unknown manager (%d)", id)
}
