package connlimit

import (
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// BenchmarkSilence is about memory: what a connection costs on which nothing, or no more
// than a greeting, was said. The client's end is in it, which is less than 1 kB.
func BenchmarkSilence(b *testing.B) {
	greeting := http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	rpc := func() *grpc.Server { return grpc.NewServer(grpc.Creds(Credentials(insecure.NewCredentials()))) }
	patient := Config{Wait: time.Hour, Waiting: 1 << 20, Conns: 1 << 20}
	for _, c := range []struct {
		name, say string
		start     func(at net.Listener) (serve func() error, stop func())
	}{
		{"behind a gate", "", func(at net.Listener) (func() error, func()) {
			s := rpc()
			return func() error { return s.Serve(New(at, patient)) }, s.Stop
		}},
		{"waited for by gRPC", "", func(at net.Listener) (func() error, func()) {
			s := grpc.NewServer()
			return func() error { return s.Serve(at) }, s.Stop
		}},
		{"waited for by http", "", func(at net.Listener) (func() error, func()) {
			s := &http.Server{ReadHeaderTimeout: time.Hour}
			return func() error { return s.Serve(at) }, func() { _ = s.Close() }
		}},
		{"introduced, without a stream", greeting, func(at net.Listener) (func() error, func()) {
			s := rpc()
			return func() error { return s.Serve(New(at, patient)) }, s.Stop
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			at, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			serve, stop := c.start(at)
			ended := make(chan error, 1)
			go func() { ended <- serve() }()
			before := inUse()
			conns := make([]net.Conn, b.N)
			for i := range conns {
				conns[i] = connectTo(b, at.Addr().String(), c.say)
			}
			b.ReportMetric(float64(inUse()-before)/float64(b.N), "B/conn")
			b.ReportMetric(0, "ns/op")
			for _, c := range conns {
				_ = c.Close() // nothing is under way
			}
			stop()
			<-ended
		})
	}
}

func connectTo(b *testing.B, addr, say string) net.Conn {
	b.Helper()
	c, err := net.Dial("tcp", addr)
	if err == nil {
		_, err = c.Write([]byte(say))
	}
	if err == nil && say != "" {
		_, err = c.Read(make([]byte, 1)) // the server has answered
	}
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// inUse is the memory that heap and stacks take, garbage apart.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
