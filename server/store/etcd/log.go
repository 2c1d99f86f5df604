package etcd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapLogger returns a logger for etcd that forwards entries of at least a level to slog. At info
// level etcd writes about sixty lines per start.
func zapLogger(to *slog.Logger, least slog.Level) *zap.Logger {
	return zap.New(&bridge{to: to.With("component", "etcd"), least: least})
}

// A bridge is a zap core that passes entries on to slog.
type bridge struct {
	to     *slog.Logger
	least  slog.Level
	fields []zapcore.Field
}

func (b *bridge) Enabled(l zapcore.Level) bool {
	return level(l) >= b.least && b.to.Enabled(context.Background(), level(l))
}

func (b *bridge) With(fields []zapcore.Field) zapcore.Core {
	return &bridge{b.to, b.least, slices.Concat(b.fields, fields)}
}

// pointless are warnings about features that an embedded member does not use: client ports and
// users.
var pointless = []string{
	"Running http and grpc server on single port. This is not recommended for production.",
	"simple token is not cryptographically signed",
}

func (b *bridge) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if b.Enabled(e.Level) && !slices.Contains(pointless, e.Message) {
		return to.AddCore(e, b)
	}
	return to
}

// served is etcd's error when it stops listening, even after a regular close.
const served = "setting up serving from embedded etcd failed."

func closed(message string, fields []zapcore.Field) bool {
	return message == served && slices.ContainsFunc(fields, func(f zapcore.Field) bool {
		err, ok := f.Interface.(error)
		return ok && errors.Is(err, net.ErrClosed)
	})
}

func (b *bridge) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if closed(e.Message, fields) {
		return nil
	}
	m := zapcore.NewMapObjectEncoder()
	for _, f := range slices.Concat(b.fields, fields) {
		f.AddTo(m)
	}
	attrs := make([]slog.Attr, 0, len(m.Fields))
	for key, value := range m.Fields {
		attrs = append(attrs, slog.Any(key, value))
	}
	slices.SortFunc(attrs, func(a, b slog.Attr) int { return strings.Compare(a.Key, b.Key) })
	b.to.LogAttrs(context.Background(), level(e.Level), e.Message, attrs...)
	return nil
}

func (b *bridge) Sync() error { return nil }

// level translates a level. Fatal levels become errors, the highest level of slog.
func level(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelError
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	case l == zapcore.InfoLevel:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}
