package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/server/daemon"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A manager exports its spans to the endpoint of the environment before it ends.
func TestManagerSendsTraces(t *testing.T) {
	spans := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &sent)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		for _, from := range sent.GetResourceSpans() {
			service := ""
			for _, a := range from.GetResource().GetAttributes() {
				if a.GetKey() == "service.name" {
					service = a.GetValue().GetStringValue()
				}
			}
			for _, scope := range from.GetScopeSpans() {
				for _, s := range scope.GetSpans() {
					spans <- service + " " + s.GetName()
				}
			}
		}
	}))
	defer receiver.Close()
	t.Setenv(daemon.TracesEndpoint, receiver.URL)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	leads := &signalWriter{word: "this manager leads", seen: stop}
	args := []string{"manager", "run", "--listen", "127.0.0.1:0", "--http", "", "--data-dir", t.TempDir()}
	if got := run(ctx, args, io.Discard, leads); got != 0 {
		t.Fatalf("exit status %d", got)
	}
	close(spans)
	found := false
	for s := range spans {
		found = found || s == "leasehold-manager leasehold.failover"
	}
	if !found {
		t.Error("no span leasehold.failover of leasehold-manager was exported")
	}
}

// A signalWriter calls a function at each write once the output contains a word.
type signalWriter struct {
	word string
	seen func()
	text bytes.Buffer
}

func (w *signalWriter) Write(p []byte) (int, error) {
	n, err := w.text.Write(p)
	if strings.Contains(w.text.String(), w.word) {
		w.seen()
	}
	return n, err
}
