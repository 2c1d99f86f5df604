package statemove

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// Limits of messages. They are part of the protocol.
const (
	// MaxRecord is the maximum length of a record.
	MaxRecord = 4 << 20
	// Window is the maximum weight of all unacknowledged chunks, unless there is only one.
	Window = 1 << 20
	// maxChunk is the maximum weight of a chunk with more than one record.
	maxChunk = 64 << 10
	// recordOverhead is the weight of a record besides its bytes, so that empty records
	// count.
	recordOverhead = 4
	// targetChunk is the weight of a full batch. gRPC pools buffers of a few sizes and clears
	// each before use: a message slightly above 32 KiB gets a buffer of 1 MiB.
	targetChunk = 32<<10 - 128

	// maxMessage has room for one record, or a chunk and the sizes of its records.
	maxMessage = MaxRecord + maxChunk
)

// Limits of concurrency.
const (
	// MaxTransfers is the maximum number of concurrent incoming moves. Use it for outgoing moves,
	// too.
	MaxTransfers = protocol.MaxAtATime
	// maxPendingStreams is the maximum number of streams that the server has not accepted yet.
	maxPendingStreams = 2 * MaxTransfers
	// maxConnections is the maximum number of connections: those of all transfers and all pending
	// streams, and some more that open and close.
	maxConnections = MaxTransfers + 2*maxPendingStreams
	// maxStreams is the maximum number of streams per connection. A source has one, and
	// earlier ones that have not ended yet.
	maxStreams = 8

	// streamWindow is gRPC's flow control window per stream: the memory that an unauthenticated
	// stream can use. Unless it is set, it grows with the traffic.
	streamWindow = 128 << 10
	// connWindow is the flow control window per connection.
	connWindow = 1 << 20
)

// ticketWait is the maximum time that a source waits for the leader's announcement of its ticket and for one
// of the MaxTransfers slots, before the server rejects it.
const ticketWait = 2 * time.Second

// maxLinger is the maximum time that a record waits for its batch to fill.
const maxLinger = time.Second

// Keepalive of connections.
const (
	maxConnectionIdle = 10 * time.Second // without a stream; longer than maxBackoff of a source
	pingInterval      = 15 * time.Second // without data
	pingTimeout       = 10 * time.Second
)

// Reconnects of a source.
const (
	minBackoff     = 20 * time.Millisecond
	maxBackoff     = time.Second
	connectTimeout = 3 * time.Second
)

func serverOptions() []grpc.ServerOption {
	return append(wire.ServerOptions(),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxConnectionIdle, Time: pingInterval, Timeout: pingTimeout}),
		grpc.WaitForHandlers(true),
	)
}

func dialOptions() []grpc.DialOption {
	return append(wire.DialOptions(),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(maxMessage), grpc.MaxCallRecvMsgSize(maxChunk)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: minBackoff, Multiplier: 2, Jitter: 0.2, MaxDelay: maxBackoff},
			MinConnectTimeout: connectTimeout,
		}),
	)
}
