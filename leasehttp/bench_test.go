package leasehttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// goal is the minimum ratio of the request rates of a Proxy and a plain ReverseProxy.
const goal = 0.70

// BenchmarkGateway compares a Proxy with a httputil.ReverseProxy that has one fixed target, in
// one process and in short turns. Everything else is the same, with real connections on the
// loopback interface. Callers write prepared bytes and read a fixed number of bytes, so that
// the proxy dominates the measurement.
//
//	go test -run '^$' -bench Gateway -benchtime 40x ./leasehttp
//
// Each iteration is 2,000 requests through each of the two.
func BenchmarkGateway(b *testing.B) {
	const connections, batch = 8, 2000
	target := listen(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "hello, world")
	}))
	plain := newCallers(b, listen(b, plainProxy(target)), connections)
	routed := newCallers(b, listen(b, routingProxy(b, target)), connections)
	plain.run(b, batch)
	routed.run(b, batch)
	var forPlain, forOurs time.Duration
	var ratios []float64
	b.ResetTimer()
	for i := range b.N {
		var p, o time.Duration
		if i%2 == 0 {
			p, o = plain.run(b, batch), routed.run(b, batch)
		} else {
			o, p = routed.run(b, batch), plain.run(b, batch)
		}
		forPlain, forOurs = forPlain+p, forOurs+o
		ratios = append(ratios, p.Seconds()/o.Seconds())
	}
	slices.Sort(ratios)
	ratio := ratios[len(ratios)/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(batch*b.N)/forPlain.Seconds(), "plain/s")
	b.ReportMetric(float64(batch*b.N)/forOurs.Seconds(), "gateway/s")
	b.ReportMetric(ratio, "ratio")
	if b.N > 1 && ratio < goal {
		b.Errorf("the gateway has %.2f of the request rate of a plain proxy, want %.2f", ratio, goal)
	}
}

// listen serves on the loopback interface until the benchmark ends, and returns the address.
func listen(b *testing.B, handler http.Handler) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // until Close
	b.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
	})
	return listener.Addr().String()
}

// sameBase is the transport of both proxies.
func sameBase() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 1024, IdleConnTimeout: time.Minute, DisableCompression: true}
}

// plainProxy has a fixed target.
func plainProxy(target string) http.Handler {
	to := &url.URL{Scheme: "http", Host: target}
	pool := &bufferPool{sync.Pool{New: func() any { return new([32 << 10]byte) }}}
	return &httputil.ReverseProxy{
		Transport: sameBase(), FlushInterval: -1, BufferPool: pool,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.SetXForwarded() },
	}
}

type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte  { return p.pool.Get().(*[32 << 10]byte)[:] }
func (p *bufferPool) Put(b []byte) { p.pool.Put((*[32 << 10]byte)(b)) }

// routingProxy is a Proxy with a manager, the server as an owner, and a lookup.
func routingProxy(b *testing.B, target string) http.Handler {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	managers := []string{startManager(ctx, b)}
	o, err := owner.Join(ctx, owner.Config{Namespace: "bench", Managers: managers, Addr: target})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = o.Close(context.Background()) })
	l, err := lookup.Open(ctx, lookup.Config{Namespace: "bench", Managers: managers})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close(context.Background()) })
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: l, Key: user, Base: sameBase()})
	if err != nil {
		b.Fatal(err)
	}
	p, err := leasehttp.NewProxy(leasehttp.ProxyConfig{Transport: transport, Stall: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// startManager starts a manager with a namespace, and returns its address.
func startManager(ctx context.Context, b *testing.B) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	m, err := manager.Start(manager.Config{Store: mem.NewDisk().Open(), StoreName: "memory", Listener: listener, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close(context.Background()) })
	conn, err := grpc.NewClient(m.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the benchmark has ended
	for {
		_, err := leaseholdv1.NewAdminServiceClient(conn).CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{
			Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{Name: "bench"},
		})
		switch {
		case err == nil:
			return m.Addr()
		case ctx.Err() != nil || leasehold.KindOf(wire.ToError(err)) == leasehold.ErrInvalid:
			b.Fatal(err)
		}
	}
}

// callers are connections, with one request at a time on each.
type callers struct {
	conns   []net.Conn
	request []byte
	answer  int // the length of a response in bytes
}

func newCallers(b *testing.B, addr string, n int) *callers {
	b.Helper()
	c := &callers{request: fmt.Appendf(nil, "GET /status HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nAccept: */*\r\nX-User: alice\r\n\r\n", addr)}
	for range n {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		c.conns = append(c.conns, conn)
	}
	c.answer = c.first(b)
	return c
}

// first sends one request and returns the length of the response, which is constant.
func (c *callers) first(b *testing.B) int {
	b.Helper()
	if _, err := c.conns[0].Write(c.request); err != nil {
		b.Fatal(err)
	}
	counted := &counter64{from: c.conns[0]}
	in := bufio.NewReader(counted)
	answer, err := http.ReadResponse(in, nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatal(answer, err)
	}
	if text, err := io.ReadAll(answer.Body); string(text) != "hello, world" {
		b.Fatal(string(text), err)
	}
	_ = answer.Body.Close()
	return counted.n
}

type counter64 struct {
	from io.Reader
	n    int
}

func (c *counter64) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += n
	return n, err
}

// run sends a number of requests and returns the duration.
func (c *callers) run(b *testing.B, requests int) time.Duration {
	b.Helper()
	began := time.Now()
	var running sync.WaitGroup
	for _, conn := range c.conns {
		running.Go(func() {
			answer := make([]byte, c.answer)
			for range requests / len(c.conns) {
				if _, err := conn.Write(c.request); err != nil {
					b.Error(err)
					return
				}
				if _, err := io.ReadFull(conn, answer); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	return time.Since(began)
}
