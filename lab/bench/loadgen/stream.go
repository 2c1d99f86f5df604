package loadgen

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

// raw is a codec for messages that are already encoded, as []byte. Decoding the messages of
// thousands of simulated clients on the server's computer would dominate a measurement.
type raw struct{}

// Name is that of gRPC's default codec.
func (raw) Name() string { return "proto" }

// Marshal returns the message.
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Unmarshal copies the message.
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// A countedConn adds its bytes to a counter, without those of TCP.
type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

func (c countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

const (
	window       = 1 << 20 // larger than a client needs
	buffer       = 2 << 10 // fits a usual reply: there are thousands of connections
	largest      = 1 << 28
	connectLimit = 3 * time.Second
)

// Dial returns a connection for [Open], with small buffers. Its bytes are added to a counter.
func Dial(addr string, bytes *atomic.Int64) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{}), grpc.MaxCallRecvMsgSize(largest)),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
		grpc.WithReadBufferSize(buffer), grpc.WithWriteBufferSize(buffer), grpc.WithSharedWriteBuffer(true),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: connectLimit}),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			return countedConn{conn, bytes}, err
		}))
}

// Open opens a stream of a method, whose messages are []byte.
func Open(ctx context.Context, conn *grpc.ClientConn, method string) (grpc.ClientStream, error) {
	return conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
}
