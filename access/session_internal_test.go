package access

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
)

// A stream's reader, its writer and the policy may all end it: the denial is logged once,
// and all return the same status.
func TestStreamEndsOnce(t *testing.T) {
	p := openForBench(t)
	var log bytes.Buffer
	p.audit = newAudit(slog.New(slog.NewTextHandler(&log, nil)))
	s, _ := holdingSession(t, p, "a")
	ctx, cancel := context.WithCancelCause(t.Context())
	s.cancel = cancel

	log.Reset()
	first, second := s.end(errors.New("the first reason")), s.end(errors.New("the second reason"))
	if first == nil || !errors.Is(second, first) || s.outcome(nil) != first { //nolint:errorlint // the identical value
		t.Errorf("the first end returned %v, the second %v, the outcome is %v", first, second, s.outcome(nil))
	}
	if n := bytes.Count(log.Bytes(), []byte(`msg="call denied" `)); n != 1 || !bytes.Contains(log.Bytes(), []byte("the first reason")) {
		t.Errorf("%d denials were logged, want 1: %s", n, &log)
	}
	if cause := context.Cause(ctx); cause == nil || cause.Error() != "the first reason" {
		t.Errorf("the handler's context ended with %v", cause)
	}
}
