package leasegrpc_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// BenchmarkCall measures the overhead of routing for a call over loopback. Callers alternate, so
// that changes of the machine's speed affect all of them:
//
//   - one with a fixed target, and one that also sends a header with the key;
//   - one that is routed to the same server by a field, to compare with the first, and one
//     by a call option, to compare with the second;
//   - one that is routed by the field to a server that checks.
//
// It reports the medians of the differences.
func BenchmarkCall(b *testing.B) {
	s := newStage(b)
	callers := []counterClient{s.fixed, s.header, s.byField, s.byOption, s.checked}
	const fixed, header, byField, byOption, checked = 0, 1, 2, 3, 4
	times := make([][]time.Duration, len(callers))
	ctx := b.Context()
	call := func(i int, name string) time.Duration {
		ctx, options := ctx, []grpc.CallOption(nil)
		begun := time.Now()
		switch i {
		case header:
			ctx = metadata.AppendToOutgoingContext(ctx, "leasehold-key", leasehold.KeyOf(name).String())
		case byOption:
			options = append(options, leasegrpc.WithKey(name))
		}
		if _, err := callers[i].add(ctx, name, options...); err != nil {
			b.Fatal(err)
		}
		return time.Since(begun)
	}
	names := make([]string, 1024)
	for i := range names {
		names[i] = fmt.Sprint("user-", i)
	}
	for i := range callers {
		call(i, "warm")
	}
	round := 0
	for b.Loop() {
		for turn := range callers {
			i := (round + turn) % len(callers) // rotates the order
			times[i] = append(times[i], call(i, names[round%len(names)]))
		}
		round++
	}
	b.ReportMetric(0, "ns/op") // meaningless for the sum
	b.ReportMetric(micros(median(times[fixed])), "fixed-µs/call")
	b.ReportMetric(micros(median(differences(times[byField], times[fixed]))), "by-field-adds-µs")
	b.ReportMetric(micros(median(differences(times[byOption], times[header]))), "by-option-adds-µs")
	b.ReportMetric(micros(median(differences(times[header], times[fixed]))), "header-adds-µs")
	b.ReportMetric(micros(median(differences(times[checked], times[byField]))), "check-adds-µs")
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

func differences(a, b []time.Duration) []time.Duration {
	out := make([]time.Duration, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] - b[i]
	}
	return out
}

// A stage is a real manager, two real servers and callers, on loopback.
//
// Each caller has its own connection: a recently used one is faster.
type stage struct{ fixed, header, byField, byOption, checked counterClient }

// silent is a server with an empty handler.
type silent struct{ *counters }

func (silent) Add(context.Context, string) (int64, error) { return 1, nil }

func newStage(b *testing.B) *stage {
	b.Helper()
	managers := startManager(b)
	bare, guarded := listen(b), listen(b)
	o, err := owner.Join(b.Context(), owner.Config{Namespace: "bench", Managers: managers, Addr: bare.Addr().String()})
	must(b, err)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = o.Close(ctx)
	})
	options, err := leasegrpc.ServerOptions(o, leasegrpc.ServerConfig{Methods: byField})
	must(b, err)
	serveOn(b, bare)
	serveOn(b, guarded, options...)
	l, err := lookup.Open(b.Context(), lookup.Config{Namespace: "bench", Managers: managers})
	must(b, err)
	b.Cleanup(func() { _ = l.Close(context.Background()) })
	routing, err := leasegrpc.DialOptions(l, leasegrpc.Config{Methods: byField, MaxOutstanding: 1000})
	must(b, err)
	elsewhere := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", guarded.Addr().String())
	})
	return &stage{
		fixed:    newCaller(b, "passthrough:///"+bare.Addr().String()),
		header:   newCaller(b, "passthrough:///"+bare.Addr().String()),
		byField:  newCaller(b, "leasehold:///bench", routing...),
		byOption: newCaller(b, "leasehold:///bench", routing...),
		checked:  newCaller(b, "leasehold:///bench", append(routing, elsewhere)...),
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func listen(b *testing.B) net.Listener {
	b.Helper()
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	must(b, err)
	return l
}

// startManager starts a manager, creates a namespace, and returns its address.
func startManager(b *testing.B) []string {
	b.Helper()
	l, store := listen(b), mem.NewDisk().Open()
	m, err := manager.Start(manager.Config{Store: store, StoreName: "memory", Listener: l, Advertise: l.Addr().String()})
	must(b, err)
	b.Cleanup(func() {
		_ = m.Close(context.Background())
		_ = store.Close()
	})
	conn := newCaller(b, "passthrough:///"+l.Addr().String(), wire.DialOptions()...)
	request := &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{Name: "bench"}}
	for { // until it is the leader
		_, err := leaseholdv1.NewAdminServiceClient(conn).CreateNamespace(b.Context(), request)
		if err == nil {
			return []string{l.Addr().String()}
		}
		if leasehold.KindOf(wire.ToError(err)) == leasehold.ErrInvalid {
			b.Fatal(err)
		}
	}
}

func serveOn(b *testing.B, l net.Listener, options ...grpc.ServerOption) {
	b.Helper()
	s := grpc.NewServer(options...)
	s.RegisterService(counterDesc(), silent{})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	b.Cleanup(func() {
		s.Stop()
		must(b, <-ended)
	})
}

func newCaller(b *testing.B, target string, options ...grpc.DialOption) counterClient {
	b.Helper()
	conn, err := grpc.NewClient(target, append(options[:len(options):len(options)], grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	must(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	return counterClient{conn}
}
