package manager_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// spansOf returns a function that returns the recorded spans of a name.
func spansOf(t *testing.T) func(name string) []tracetest.SpanStub {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	otel.SetTracerProvider(provider)
	t.Cleanup(func() {
		otel.SetTracerProvider(noop.NewTracerProvider())
		_ = provider.Shutdown(context.Background()) // frees the memory
	})
	return func(name string) (out []tracetest.SpanStub) {
		for _, s := range exporter.GetSpans() {
			if s.Name == name {
				out = append(out, s)
			}
		}
		return out
	}
}

// attributesOf returns the attributes of a span.
func attributesOf(s tracetest.SpanStub) map[string]string {
	out := make(map[string]string)
	for _, a := range s.Attributes {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}

// TestSpans: joins, moves at source, target and leader, leaves and failovers.
func TestSpans(t *testing.T) {
	spans := spansOf(t)
	leaseholdtest.Run(t, leaseholdtest.Config{Managers: 2, Policy: "even"}, func(t *testing.T, c *leaseholdtest.Cluster) {
		ctx, outer := otel.Tracer("test").Start(t.Context(), "deploy")
		var maps []*leasemap.Map[int]
		for _, name := range []string{"a", "b"} {
			m, err := leasemap.Join(ctx, c.Node(name).MovingConfig(), leasemap.Config[int]{})
			if err != nil {
				t.Fatal(err)
			}
			c.Node(name).Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
			maps = append(maps, m)
			c.Settle()
			if name == "a" {
				for i := range 10 {
					if _, err := m.Update(t.Context(), fmt.Sprint(i), func(v *int) error { *v = i; return nil }); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		c.Advance(5 * time.Second)
		outer.End()

		joins := spans("leasehold.join")
		if len(joins) != 2 || joins[0].Parent.SpanID() != outer.SpanContext().SpanID() || attributesOf(joins[1])["leasehold.owner"] == "" {
			t.Errorf("%d joins: %+v", len(joins), joins)
		}
		checkMove(t, spans)
		checkFailover(t, c, spans)

		if err := maps[0].Close(t.Context()); err != nil {
			t.Error(err)
		}
		if left := spans("leasehold.leave"); len(left) != 1 || left[0].Status.Code == codes.Error {
			t.Errorf("leaves: %+v", left)
		}
	})
}

func checkMove(t *testing.T, spans func(string) []tracetest.SpanStub) {
	t.Helper()
	out, in, seen := spans("leasehold.move.out"), spans("leasehold.move.in"), spans("leasehold.move")
	if len(out) == 0 || len(out) != len(in) || len(out) != len(seen) {
		t.Fatalf("%d spans of moves at the source, %d at the target, %d at the leader", len(out), len(in), len(seen))
	}
	source, target, leader := attributesOf(out[0]), attributesOf(in[0]), attributesOf(seen[0])
	if source["leasehold.move"] == "" || source["leasehold.move"] != target["leasehold.move"] || source["leasehold.range"] != leader["leasehold.range"] {
		t.Errorf("attributes of the source %v, the target %v and the leader %v", source, target, leader)
	}
	if in[0].SpanContext.TraceID() != out[0].SpanContext.TraceID() || in[0].Parent.SpanID() != out[0].SpanContext.SpanID() {
		t.Errorf("the target's span is below %v, want %v", in[0].Parent, out[0].SpanContext)
	}
	if source["leasehold.outcome"] != "moved" || source["leasehold.records"] == "0" || leader["leasehold.outcome"] != "moved" || leader["leasehold.peer"] != source["leasehold.peer"] {
		t.Errorf("sizes of the source %v, and of the leader %v", source, leader)
	}
	if events := out[0].Events; len(events) != 1 || events[0].Name != "stopped" {
		t.Errorf("events: %v", events)
	}
	if took := seen[0].EndTime.Sub(seen[0].StartTime); took <= 0 || took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// checkFailover: the span starts when the old leader has expired, and ends when the new leader serves.
func checkFailover(t *testing.T, c *leaseholdtest.Cluster, spans func(string) []tracetest.SpanStub) {
	t.Helper()
	if first := spans("leasehold.failover"); len(first) != 1 || attributesOf(first[0])["leasehold.leader.before"] != "" {
		t.Fatalf("first election: %+v", first)
	}
	dead := c.KillLeader()
	c.Advance(5 * time.Second)
	c.Settle()
	all := spans("leasehold.failover")
	if len(all) != 2 {
		t.Fatalf("%d failovers", len(all))
	}
	attrs := attributesOf(all[1])
	if attrs["leasehold.leader.before"] != dead+":7400" || attrs["leasehold.term"] != "2" || attrs["leasehold.namespaces"] != "1" || all[1].Status.Code == codes.Error {
		t.Errorf("%v", attrs)
	}
	c.StartManager(dead)
}

// TestRecallSpan: it ends when the owner returns the lease to the leader, after all guarded calls have ended.
func TestRecallSpan(t *testing.T) {
	spans := spansOf(t)
	leaseholdtest.Run(t, leaseholdtest.Config{Policy: "even"}, func(t *testing.T, c *leaseholdtest.Cluster) {
		const promise = time.Second
		o := c.Node("a").Join(owner.Config{MaxPromise: promise, WaitForPredecessor: true})
		c.Settle()
		held, _ := o.Promise()
		if len(held) == 0 {
			t.Fatal("no leases")
		}
		stop := make(chan struct{})
		go func() { // guards that follow each other
			defer close(stop)
			for range 40 {
				o.Promise()
				time.Sleep(100 * time.Millisecond)
			}
		}()
		c.Node("b").Join(owner.Config{})
		<-stop
		c.Settle()
		recalls := spans("leasehold.recall")
		if len(recalls) == 0 {
			t.Fatal("no recall")
		}
		took := recalls[0].EndTime.Sub(recalls[0].StartTime)
		if took < promise/2 || took > 2*promise {
			t.Errorf("the recall took %v, with guards for %v", took, promise)
		}
		if attrs := attributesOf(recalls[0]); attrs["leasehold.leases"] == "0" || attrs["leasehold.owner"] != string(o.Name()) {
			t.Errorf("%v", attrs)
		}
	})
}

// TestFailedJoinSpan: the span of a failed join has the error.
func TestFailedJoinSpan(t *testing.T) {
	spans := spansOf(t)
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		cfg := c.Node("a").OwnerConfig()
		cfg.Namespace = "elsewhere"
		if _, err := owner.Join(t.Context(), cfg); leasehold.KindOf(err) != leasehold.ErrNotFound {
			t.Fatal(err)
		}
		if joins := spans("leasehold.join"); len(joins) != 1 || joins[0].Status.Code != codes.Error || joins[0].SpanKind != trace.SpanKindInternal {
			t.Errorf("%+v", joins)
		}
	})
}
