package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/logthrottle"
)

// Traces are configured by the standard variables of OpenTelemetry: OTEL_EXPORTER_OTLP_ENDPOINT
// enables them, and the other variables of the SDK and its exporters work as documented. There
// are no flags for them.
const (
	TracesEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpointOwn    = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	tracesProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	tracesProtocolOwn    = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	tracesExporter       = "OTEL_TRACES_EXPORTER"
	tracesDisabled       = "OTEL_SDK_DISABLED"
	tracesPatience       = 5 * time.Second // for flushing at shutdown
	tracesComplaintEvery = time.Minute
)

// TracesHelp is part of the help of commands that create spans.
const TracesHelp = `Traces are exported by OTLP if OTEL_EXPORTER_OTLP_ENDPOINT is set, with the variables of
OpenTelemetry, such as OTEL_EXPORTER_OTLP_PROTOCOL (http/protobuf or grpc).`

// ServeTraces starts the export of spans if the environment enables it. The returned function
// flushes and stops it.
func ServeTraces(ctx context.Context, service string, log *slog.Logger) (stop func(), err error) {
	if !tracesWanted() {
		return func() {}, nil
	}
	exporter, err := newTraceExporter(ctx)
	if err != nil {
		return nil, leasehold.Errorf("send traces", leasehold.ErrInvalid, "", "%w", err)
	}
	// The environment is last, so that OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override.
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", buildLabelsHere()["version"])),
		resource.WithHost(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		log.Warn("OTEL_RESOURCE_ATTRIBUTES or host detection failed: traces lack attributes", "why", err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
	otel.SetErrorHandler(traceComplaints(log))
	otel.SetTracerProvider(provider)
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), tracesPatience)
		defer cancel()
		otel.SetTracerProvider(noop.NewTracerProvider())
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("the last traces were not sent", "why", err)
		}
	}, nil
}

func tracesWanted() bool {
	switch {
	case strings.EqualFold(os.Getenv(tracesDisabled), "true"), os.Getenv(tracesExporter) == "none":
		return false
	}
	return os.Getenv(TracesEndpoint) != "" || os.Getenv(tracesEndpointOwn) != ""
}

// newTraceExporter creates an exporter without connecting. It reads further settings from the environment.
func newTraceExporter(ctx context.Context) (trace.SpanExporter, error) {
	if to := os.Getenv(tracesExporter); to != "" && to != "otlp" {
		return nil, fmt.Errorf("%s %q: want otlp or none", tracesExporter, to)
	}
	variable, protocol := tracesProtocolOwn, os.Getenv(tracesProtocolOwn)
	if protocol == "" {
		variable, protocol = tracesProtocol, os.Getenv(tracesProtocol)
	}
	switch protocol {
	case "", "http/protobuf":
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	}
	return nil, fmt.Errorf("%s %q: want http/protobuf or grpc", variable, protocol)
}

// traceComplaints logs export failures at a limited rate.
func traceComplaints(log *slog.Logger) otel.ErrorHandler {
	throttle := logthrottle.New[struct{}](tracesComplaintEvery)
	return otel.ErrorHandlerFunc(func(err error) {
		if _, ok := throttle.Allow(struct{}{}, 1); ok {
			log.Warn("traces are not sent", "why", err)
		}
	})
}
