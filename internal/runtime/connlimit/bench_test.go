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

// BenchmarkSilence measures the memory of a connection without data, or with no more than the HTTP/2 preface.
// It includes the client's end, less than 1 kB.
func BenchmarkSilence(b *testing.B) {
	preface := http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	rpc := func() *grpc.Server { return grpc.NewServer(grpc.Creds(Credentials(insecure.NewCredentials()))) }
	unlimited := Config{HandshakeTimeout: time.Hour, MaxPending: 1 << 20, Conns: 1 << 20}
	for _, c := range []struct {
		name, data string
		start      func(at net.Listener) (serve func() error, stop func())
	}{
		{"connlimit", "", func(at net.Listener) (func() error, func()) {
			s := rpc()
			return func() error { return s.Serve(New(at, unlimited)) }, s.Stop
		}},
		{"gRPC", "", func(at net.Listener) (func() error, func()) {
			s := grpc.NewServer()
			return func() error { return s.Serve(at) }, s.Stop
		}},
		{"http", "", func(at net.Listener) (func() error, func()) {
			s := &http.Server{ReadHeaderTimeout: time.Hour}
			return func() error { return s.Serve(at) }, func() { _ = s.Close() }
		}},
		{"established, no stream", preface, func(at net.Listener) (func() error, func()) {
			s := rpc()
			return func() error { return s.Serve(New(at, unlimited)) }, s.Stop
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
				conns[i] = connectTo(b, at.Addr().String(), c.data)
			}
			b.ReportMetric(float64(inUse()-before)/float64(b.N), "B/conn")
			b.ReportMetric(0, "ns/op")
			for _, c := range conns {
				_ = c.Close()
			}
			stop()
			<-ended
		})
	}
}

func connectTo(b *testing.B, addr, data string) net.Conn {
	b.Helper()
	c, err := net.Dial("tcp", addr)
	if err == nil {
		_, err = c.Write([]byte(data))
	}
	if err == nil && data != "" {
		_, err = c.Read(make([]byte, 1)) // the server's SETTINGS
	}
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// inUse returns the memory of heap and stacks without garbage.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
