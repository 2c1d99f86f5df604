// Package link carries messages between a client library and a group of
// managers, over one gRPC stream for each manager that is spoken to.
//
// # DESIGN
//
// The machines were made for a network that loses messages, and every message
// can be understood alone. So a link promises little, and is small:
//
//   - Sending never blocks and never fails. What cannot be delivered is
//     dropped: the machine hears no answer, and speaks again when it thinks
//     fit. A link repeats nothing on its own account.
//   - Per manager one message waits, the newest. An older one that has not left
//     yet is replaced: the peer would drop it as outdated.
//   - A stream is never the truth about anything. That it broke is reported, to
//     be logged and to explain why nobody answers, and decides nothing.
//
// Connections and streams are made when something is sent, and closed when
// nothing has been for long or when nothing is heard in answer: a connection may
// die without a word, and a new one may work (see silence.go). How often a connection is tried is bounded by
// gRPC's own backoff, which is jittered; how often a stream is, by how often
// the machine speaks.
package managerconn
