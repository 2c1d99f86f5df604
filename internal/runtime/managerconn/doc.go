// Package managerconn sends and receives messages between a client library and a group of managers, over
// one gRPC stream per manager.
//
// # Design
//
// The machines tolerate lost messages, and every message is complete in itself. So a link guarantees
// little:
//
//   - Send neither blocks nor fails. An undeliverable message is dropped; the machine gets no reply and
//     retries. A link never retries a message.
//   - The queue of each manager has one message, the newest. It replaces an older one, which the
//     manager would discard as stale.
//   - The end of a stream is reported for logs and error messages. It has no other effect.
//
// The first message to a manager opens its connection and stream. They are closed when they are idle, and when
// the manager does not reply: the connection may be dead without an error, and a new one may work (see
// liveness.go). gRPC's jittered backoff limits the rate of connection attempts, and the machine's messages the
// rate of streams.
package managerconn
