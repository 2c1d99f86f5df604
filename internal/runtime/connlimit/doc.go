// Package connlimit limits the connections of a server, in particular those that have not completed
// their handshake.
//
// Any client that reaches a port can open ten thousand connections and send nothing, or one byte at a
// time. A server that allocates buffers for each runs out of memory. A server with a fixed number of
// connections has none left for its clients. A connection is therefore pending until its handshake is
// complete: with gRPC after the handshake of the credentials, the HTTP/2 preface and the first SETTINGS
// frame; with HTTP after the header of its first request. These limits apply:
//
//   - The server accepts a connection only after its first bytes have arrived. Until then it costs a
//     socket and a small goroutine, and no buffer.
//
//   - A connection may be pending for [Config.HandshakeTimeout] after the accept, however many bytes it
//     sends.
//
//   - At most [Config.MaxPending] connections are pending. One more replaces the oldest: a genuine client
//     completes its handshake in a moment, so the oldest is the least likely to be genuine.
//
//   - With [Callers], a client without a certificate stays pending until one of its calls is authenticated.
//
//   - At most [Config.Conns] connections are open, and [Config.PerHost] from one host. Loopback addresses
//     are exempt from PerHost. At the limit the oldest pending connection is closed. If none is pending the
//     new connection is closed at once, so that the client can try another server.
//
//   - [Config.Pace] is the rate of handshakes per host: before authentication, a TLS handshake is the most
//     expensive operation that a client can request.
//
// The server limits everything else: idle time, streams per connection, header length. If a client exceeds
// the server's limits, [Slow] and [Refused] pause reading from its connection. Its data then
// waits in its own buffers.
//
// [Serve] is for HTTP. For gRPC, [New] makes the listener, [Credentials] reports the end of the handshake,
// and [Services] rejects compressed messages before they are read.
//
// # Design
//
// The listener does not run TLS. gRPC's credentials must run the handshake themselves, because they return
// the identity of the peer. The listener only counts connections and closes them: one goroutine
// watches all pending connections, in the order of their deadlines. No connection has a timer of its own, and
// deadlines that the server sets do not extend the time.
//
// Each connection without data costs one small goroutine of this package instead of the server's larger one.
// BenchmarkSilence compares the memory per connection with and without this package; an established
// gRPC connection without a stream is there for comparison:
//
//	go test -run '^$' -bench Silence -benchtime 2000x ./internal/runtime/connlimit
//	connlimit               3531 B/conn
//	gRPC                    7479 B/conn
//	http                   13779 B/conn
//	established,_no_stream 48017 B/conn
package connlimit
