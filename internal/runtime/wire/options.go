package wire

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Limits of messages. A longer one is rejected by its length prefix, before memory is allocated, and ends its
// stream.
const (
	// MaxRequest is the limit of managers: the maximum number of leases of an owner at 25 bytes
	// each, and more than that for loads and moves.
	MaxRequest = 4 << 20
	// MaxResponse is the limit of owners and lookups: a table of a million ranges at up to 33 bytes
	// each, and its holders.
	MaxResponse = 64 << 20
)

// Keepalive of connections. Leases do not depend on it, because clients without replies reconnect long
// before: it limits the time until the resources of a dead connection are released. Idle connections are
// common with long leases, and a ping costs as much as a renewal.
const (
	pingAfter   = time.Minute // without data, on both sides
	pingTimeout = 10 * time.Second
	// minPingInterval is the minimum interval of a peer's pings. gRPC clients never ping more often than
	// every 10 s.
	minPingInterval = 5 * time.Second
	// maxConnectionIdle is the idle timeout of a connection without streams. Owners and lookups always have a
	// stream. Standbys that forward calls, and tools, reconnect transparently.
	maxConnectionIdle = 30 * time.Second
	// handshakeTimeout includes TLS, the HTTP/2 preface and the first SETTINGS frame.
	handshakeTimeout = 5 * time.Second
)

// maxStreams is the maximum number of streams per connection: one per namespace of a process or standby,
// with room for shared connections.
const maxStreams = 8192

// maxHeaders is the maximum size of headers and trailers of a call, including error details.
const maxHeaders = 32 << 10

// readBuffer is the size of a manager's read buffer per connection. Managers have thousands of connections
// with short and rare requests: gRPC's default of 32 KiB would be half of the memory per client.
// Connections share their write buffers.
const readBuffer = 2 << 10

// Flow control windows of streams and connections. They are fixed: otherwise gRPC measures the bandwidth
// with a ping after nearly every message, which costs more than the short messages of this protocol. A long
// message takes a round trip per window.
const (
	// requestWindow is far larger than usual requests of owners.
	requestWindow = 256 << 10
	// responseWindow is for tables: a million ranges take at most 16 round trips.
	responseWindow = 4 << 20
)

// ServerOptions returns the options of a manager's gRPC server: the codec for frames, and limits for
// messages, pings, streams and handshakes.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec(maxRequestParts)),
		grpc.MaxRecvMsgSize(MaxRequest),
		grpc.MaxSendMsgSize(MaxResponse),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.ReadBufferSize(readBuffer),
		grpc.StaticStreamWindowSize(requestWindow),
		grpc.StaticConnWindowSize(4 * requestWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxConnectionIdle, Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
	}
}

// DialOptions returns the options of a manager's client, except for credentials. gRPC does not retry calls:
// the libraries do.
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
