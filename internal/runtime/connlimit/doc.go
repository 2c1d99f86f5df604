// Package gate stands before a server's listener, where nobody is known yet.
//
// Whoever reaches a port can connect to it ten thousand times and say nothing, or a
// byte now and then. A server that gives each of them its buffers is out of memory, and
// one that has a fixed number of places has none left for those that it is there for.
// So a connection that has not introduced itself costs next to nothing here, has little
// time, and is the first to go:
//
//   - It is kept away from the server until its first bytes are there. Until then it is a
//     socket and a small goroutine, without any buffer.
//
//   - It has [Config.Wait] from the moment that it is accepted, whatever it says meanwhile,
//     until it has introduced itself: with gRPC when the handshake of its credentials, the
//     preface of HTTP/2 and the first SETTINGS are complete, with HTTP when the header of
//     its first request is.
//
//   - There are at most [Config.Waiting] such connections. If one more comes, the oldest
//     goes: a peer of ours needs a moment to introduce itself, so that the oldest is the
//     one that least looks like one.
//
//   - For servers that want to know who calls, [Callers], that is not enough: somebody
//     without a certificate has introduced himself when one of his calls was let in.
//
//   - There are at most [Config.Conns] connections in all, and [Config.PerHost] from one
//     host. The loopback is not counted by host. If there are too many in all, the oldest
//     that has not introduced itself makes room; if there is none, the new one is closed
//     at once, so that it can try another server, and does not hang.
//
//   - With [Config.Pace], connections of one host take turns: to shake hands over TLS costs
//     the processor more than anything else that a peer can ask for, before it is known who
//     asks.
//
// What comes after that is the server's: for how long a connection may be idle, how many
// streams it may have, how long headers may be. If that finds that somebody asks for too
// much, [Slow] and [Refused] have the gate not read the connection for a while: who floods
// then waits in buffers of its own, and costs nothing.
//
// [Serve] is for HTTP. For gRPC, [New] makes the listener, [Credentials] sees to the
// introduction, and [Services] refuses compressed messages unread.
//
// # Design
//
// TLS is not the gate's business: it would have to hand a finished connection to gRPC,
// whose credentials insist on shaking hands themselves, since it is they who say who the
// peer is. The gate counts instead, and cuts off: one goroutine looks after all that wait,
// in the order in which they came, and closes what is overdue. No connection has a timer,
// and no deadline of the server's can extend the time.
//
// To wait for the first bytes in a goroutine of ours, and not in the server's, costs one
// for each connection that waits, but a small one. BenchmarkSilence has what a connection
// that says nothing costs here, and what it costs if the server waits for it; one that has
// introduced itself to gRPC and opens no stream is there for comparison:
//
//	go test -run '^$' -bench Silence -benchtime 2000x ./internal/runtime/connlimit
//	behind_a_gate                  3531 B/conn
//	waited_for_by_gRPC             7479 B/conn
//	waited_for_by_http            13779 B/conn
//	introduced,_without_a_stream  48017 B/conn
package connlimit
