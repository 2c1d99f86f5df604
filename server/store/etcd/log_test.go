package etcd

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"testing"

	"go.uber.org/zap"
)

// TestLogBridge: messages of etcd at warning level and above are in our log with their fields;
// others are not.
func TestLogBridge(t *testing.T) {
	var out bytes.Buffer
	to := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	lg := zapLogger(to, slog.LevelWarn).With(zap.String("member", "a"))
	lg.Debug("not this")
	lg.Info("nor this")
	lg.Warn("slow", zap.Int("took", 3))
	lg.Warn(pointless[0])
	lg.Error(served, zap.Error(&net.OpError{Op: "accept", Net: "tcp", Err: net.ErrClosed}))
	lg.Error(served, zap.Error(errors.New("no more files")))
	lg.Error("broken", zap.Error(errors.New("disk")))
	want := "level=WARN msg=slow component=etcd member=a took=3\n" +
		"level=ERROR msg=\"" + served + "\" component=etcd error=\"no more files\" member=a\n" +
		"level=ERROR msg=broken component=etcd error=disk member=a\n"
	if got := out.String(); got != want {
		t.Errorf("the log has\n%s\nwant\n%s", got, want)
	}
}
