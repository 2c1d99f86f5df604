// Package statemove transfers the state of a range from one owner to another: the two ends of
// MoverService, whose protocol is in proto/leasehold/v1/move.proto.
//
// The source has an [Outgoing] per move. The target has an [Incoming] per move, which its [Server] fills.
// Streams between them may break: the Outgoing reconnects and resumes at the chunk that the target requests. The
// application sends and receives records, in order. Their content is opaque to this package.
//
// # Flow control
//
// A chunk is acknowledged when the target's application asks for the record after it. At most [Window] bytes are
// unacknowledged, so a slow importer slows down the exporter. Neither side holds more than that in memory per move,
// or one chunk if that is larger; the source also holds the current batch. A small record waits for its batch for
// at most a second, so that the target's idle timeout does not fire.
//
// # Timeouts
//
// Both ends fail after a time without progress. At the source, progress is a record that its application sends or an
// ack. At the target, it is a chunk that arrives or that the application takes. So at least one end
// detects any hang, and it notifies the other. When an Outgoing or Incoming fails, its context ends with the
// reason as the cause.
//
// # Authorization
//
// A server accepts a source with the ticket of a move that the leader has announced. The leader's
// announcement may reach the source before the target: a source with an unknown ticket waits briefly, is
// rejected and retries. Tickets are compared in constant time. The source sends its ticket in the metadata
// of its call, and the server reads no message before it accepts the source.
//
// A ticket is as secret as the connections to the managers. Without TLS the leader sends it to any client that uses
// the name of the source or the target, so that network must be trusted.
package statemove
