package statemove

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// Bounds on what is sent. They are part of the protocol.
const (
	// MaxRecord is the longest record.
	MaxRecord = 4 << 20
	// Window is how much chunks may weigh together that are under way and that the
	// target's application has not taken, if they are more than one.
	Window = 1 << 20
	// maxChunk is how much a chunk weighs at most that has more than one record.
	maxChunk = 64 << 10
	// perRecord is what a record weighs besides its bytes: empty ones should not
	// be without number.
	perRecord = 4
	// fullChunk is how much a chunk weighs that we fill with records. gRPC keeps
	// buffers of a few sizes, and clears one each time that it is used: what needs
	// little more than 32 KiB is given a whole MiB.
	fullChunk = 32<<10 - 128

	// maxMessage: a record, or a chunk and the sizes of its records.
	maxMessage = MaxRecord + maxChunk
)

// Bounds on what is done at a time.
const (
	// MaxTransfers is how many moves a server takes in at a time. It is also a
	// good bound for how many an owner should send.
	MaxTransfers = protocol.MaxAtATime
	// maxStrangers is how many streams may be waiting to be let in.
	maxStrangers = 2 * MaxTransfers
	// maxConnections is how many peers are heard at a time: those of all transfers
	// and all strangers, and some that come and go. More are closed.
	maxConnections = MaxTransfers + 2*maxStrangers
	// maxStreams is how many streams a connection may have: a source has one, and
	// some of before that have not ended yet.
	maxStreams = 8

	// streamWindow is how many bytes of a stream gRPC takes before we read any,
	// which is as much as a stranger can have us keep. It must not grow with the
	// traffic, as it does unless it is set.
	streamWindow = 128 << 10
	// connWindow is how many bytes of a connection may be on the wire.
	connWindow = 1 << 20
)

// ticketWait is how long a server waits for the leader's word that a source is
// expected, and for the source's turn, before it turns the source away.
const ticketWait = 2 * time.Second

// longestLinger is how long a record may wait for others to travel with.
const longestLinger = time.Second

// What keeps a connection open: streams, and a peer that answers. One that has no
// stream takes the place of another.
const (
	closeAfter  = 10 * time.Second // without a stream; a source comes again in less
	pingAfter   = 15 * time.Second // of silence
	pingTimeout = 10 * time.Second
)

// How soon a source dials again.
const (
	leastBackoff = 20 * time.Millisecond
	mostBackoff  = time.Second
	dialWait     = 3 * time.Second // for one connection to come about
)

func serverOptions() []grpc.ServerOption {
	return append(wire.ServerOptions(),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: closeAfter, Time: pingAfter, Timeout: pingTimeout}),
		grpc.WaitForHandlers(true),
	)
}

func dialOptions() []grpc.DialOption {
	return append(wire.DialOptions(),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(maxMessage), grpc.MaxCallRecvMsgSize(maxChunk)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: leastBackoff, Multiplier: 2, Jitter: 0.2, MaxDelay: mostBackoff},
			MinConnectTimeout: dialWait,
		}),
	)
}
