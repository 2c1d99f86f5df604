package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestServeTraces: traces are off unless the environment configures an endpoint. Unknown protocols
// and exporters are rejected.
func TestServeTraces(t *testing.T) {
	for _, name := range []string{TracesEndpoint, tracesEndpointOwn, tracesProtocol, tracesProtocolOwn, tracesExporter, tracesDisabled} {
		t.Setenv(name, "")
	}
	for _, test := range []struct {
		name    string
		set     map[string]string
		wanted  bool
		refused string
	}{
		{"nothing", nil, false, ""},
		{"a protocol alone", map[string]string{tracesProtocol: "carrier pigeon"}, false, ""},
		{"an endpoint", map[string]string{TracesEndpoint: "http://127.0.0.1:1"}, true, ""},
		{"one for traces", map[string]string{tracesEndpointOwn: "http://127.0.0.1:1/v1/traces"}, true, ""},
		{"by gRPC", map[string]string{TracesEndpoint: "http://127.0.0.1:1", tracesProtocol: "grpc"}, true, ""},
		{"disabled", map[string]string{TracesEndpoint: "http://127.0.0.1:1", tracesDisabled: "true"}, false, ""},
		{"to nowhere", map[string]string{TracesEndpoint: "http://127.0.0.1:1", tracesExporter: "none"}, false, ""},
		{"to others", map[string]string{TracesEndpoint: "http://127.0.0.1:1", tracesExporter: "zipkin"}, true, `OTEL_TRACES_EXPORTER "zipkin": want otlp or none`},
		{"by JSON", map[string]string{TracesEndpoint: "http://127.0.0.1:1", tracesProtocolOwn: "http/json", tracesProtocol: "grpc"}, true, `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL "http/json": want http/protobuf or grpc`},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, value := range test.set {
				t.Setenv(name, value)
			}
			if got := tracesWanted(); got != test.wanted {
				t.Errorf("wanted: %t", got)
			}
			stop, err := ServeTraces(t.Context(), "test", slog.New(slog.DiscardHandler))
			switch {
			case err == nil && test.refused == "":
				stop()
			case err == nil || test.refused == "" || !strings.Contains(err.Error(), test.refused):
				t.Errorf("%v, want %q", err, test.refused)
			}
		})
	}
}

// TestTraceExportErrorsAreThrottled: an unreachable receiver is logged once, and not for every
// batch.
func TestTraceExportErrorsAreThrottled(t *testing.T) {
	var text bytes.Buffer
	c := traceComplaints(slog.New(slog.NewTextHandler(&text, nil)))
	for range 100 {
		c.Handle(errors.New("connection refused"))
	}
	if n := strings.Count(text.String(), "connection refused"); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}
}
