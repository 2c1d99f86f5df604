package managerconn

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// An outage is logged once, when all configured managers have failed, and its end once.
func TestOutage(t *testing.T) {
	var log bytes.Buffer
	o := NewOutage(func() []string { return []string{"a:1", "b:1"} }, slog.New(slog.NewTextHandler(&log, nil)))
	refused := &leasehold.Error{Kind: leasehold.ErrUnavailable, Err: errors.New("connection refused")}
	wantLines := func(when string, warnings, infos int) {
		t.Helper()
		if w, i := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "level=INFO"); w != warnings || i != infos {
			t.Errorf("%s: %d warnings and %d others:\n%s", when, w, i, &log)
		}
	}
	o.Failed("a:1", refused)
	o.Failed("leader:1", refused) // of a redirect
	wantLines("one of two failed", 0, 0)
	o.Answered("b:1")
	o.Failed("b:1", refused)
	wantLines("the other failed after an answer", 0, 0)
	for range 10 {
		o.Failed("a:1", refused)
	}
	wantLines("all failed", 1, 0)
	if !strings.Contains(log.String(), `msg="no manager answers; retrying until one does" managers="a:1: connection refused; b:1: connection refused"`) {
		t.Errorf("%s", &log)
	}
	o.Answered("a:1")
	o.Answered("a:1")
	wantLines("a manager answered", 1, 1)
	log.Reset()
	o.Failed("a:1", refused)
	o.Failed("b:1", errors.New("does not lead"))
	if !strings.Contains(log.String(), "no manager serves this client; retrying") {
		t.Errorf("one manager answered:\n%s", &log)
	}
}

func TestAdvice(t *testing.T) {
	for reason, want := range map[string]string{
		"a: connection refused": "start a manager",
		"a: the server closed the plaintext connection; it may require TLS and certificates: EOF":      "configure certificates",
		"a: the manager uses plaintext, but this client uses TLS":                                      "or omit them here",
		"a: x509: certificate signed by unknown authority":                                             "pki show",
		"a: does not lead, and has no leader":                                                          "majority",
		"a: the client has version 4 and the manager 2, and they may differ by 1: upgrade the manager": "upgrade as each error says",
		"leader:1: connection refused":                                                                 "start a manager",
	} {
		if got := advice(reason); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", reason, got, want)
		}
	}
}
