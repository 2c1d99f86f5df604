package access

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
)

// A stream's reader, its writer and the policy may all find that it must end. It is written
// down once, and all of them say the same.
func TestStreamEndsOnce(t *testing.T) {
	p := openForBench(t)
	var log bytes.Buffer
	p.audit = newAudit(slog.New(slog.NewTextHandler(&log, nil)))
	s, _ := holdingSession(t, p, "a")
	ctx, cancel := context.WithCancelCause(t.Context())
	s.cancel = cancel

	log.Reset()
	first, second := s.end(errors.New("the first reason")), s.end(errors.New("the second reason"))
	if first == nil || !errors.Is(second, first) || s.verdict(nil) != first { //nolint:errorlint // it is the very same
		t.Errorf("it ended with %v, then with %v, and the verdict is %v", first, second, s.verdict(nil))
	}
	if n := bytes.Count(log.Bytes(), []byte("msg=refused ")); n != 1 || !bytes.Contains(log.Bytes(), []byte("the first reason")) {
		t.Errorf("%d refusals were written down, want 1: %s", n, &log)
	}
	if cause := context.Cause(ctx); cause == nil || cause.Error() != "the first reason" {
		t.Errorf("its handler heard %v", cause)
	}
}
