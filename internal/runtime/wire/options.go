package wire

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Limits on messages. A longer one is refused when its length is announced,
// before there is memory for it, and ends its stream.
const (
	// MaxRequest is what managers accept: as many leases as an owner may have,
	// at 25 bytes each, and more than as much again for loads and moves.
	MaxRequest = 4 << 20
	// MaxResponse is what owners and lookups accept: a table of a million
	// ranges, at up to 33 bytes each, and its holders.
	MaxResponse = 64 << 20
)

// What keeps a connection alive. Leases do not depend on it, since clients dial
// anew long before that if nobody answers: it is how long the memory of a
// connection outlives a peer that is gone without a word. Silence is usual for those who
// have long leases and ask rarely, and a ping costs as much as a renewal.
const (
	pingAfter   = time.Minute // of silence, by either side
	pingTimeout = 10 * time.Second
	// pingLeast is how often a peer may ping at most. gRPC's clients keep to 10 s
	// whatever they are told; less than that is not one of ours.
	pingLeast = 5 * time.Second
	// idleAfter is for how long a connection may have no stream. Owners and lookups have
	// one for as long as they live. Standbys that forward a call now and then, and tools,
	// connect again without noticing.
	idleAfter = 30 * time.Second
	// handshakeTime is for TLS, the preface of HTTP/2 and its first settings together.
	handshakeTime = 5 * time.Second
)

// maxStreams bounds the streams of one connection: one for each namespace that
// a process takes part in, or that a standby follows, with room for those who
// share a connection.
const maxStreams = 8192

// maxHeaders bounds the headers and trailers of a call, error details included.
const maxHeaders = 32 << 10

// readBuffer is for what a manager reads from a connection at once. Every connection has one
// for as long as it lives, and there are thousands, on which requests are short and rare:
// gRPC's usual 32 KiB would be half of what a client costs. What is written waits in buffers
// that all connections share.
const readBuffer = 2 << 10

// Windows are how much a peer may send on a stream, or a connection, before what it sent was
// taken. They are fixed: gRPC would otherwise find out how large they should be, and ask with a
// ping after nearly every message, which costs both sides more than messages do that are as short
// as ours. So long ones wait for a round trip for every window of them.
const (
	// requestWindow is for what owners say, far more than they usually do.
	requestWindow = 256 << 10
	// responseWindow is for tables: a million ranges take 16 round trips at most.
	responseWindow = 4 << 20
)

// ServerOptions is what a manager's gRPC server needs to understand owners,
// lookups and tools, to send frames, and to be safe from peers that send too
// much, ping too often, or never finish shaking hands.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec(maxRequestParts)),
		grpc.MaxRecvMsgSize(MaxRequest),
		grpc.MaxSendMsgSize(MaxResponse),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.ReadBufferSize(readBuffer),
		grpc.StaticStreamWindowSize(requestWindow),
		grpc.StaticConnWindowSize(4 * requestWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleAfter, Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingLeast, PermitWithoutStream: true}),
	}
}

// DialOptions is what a client of a manager needs, but for credentials. Calls
// are not retried by gRPC: the libraries decide when to speak again.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(newCodec(maxResponseParts)),
			grpc.MaxCallRecvMsgSize(MaxResponse),
			grpc.MaxCallSendMsgSize(MaxRequest),
		),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithStaticStreamWindowSize(responseWindow),
		grpc.WithStaticConnWindowSize(2 * responseWindow),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
	}
}
