// Package mover carries the state of a range from one owner to another: the two
// ends of MoverService, whose protocol is in proto/leasehold/v1/move.proto.
//
// The source has an [Outgoing] for each move, the target an [Incoming], which
// its [Server] fills. In between there are streams that may break: an Outgoing
// dials again and goes on where the target wants it to. What an application sends
// and takes are records, in order; what is in them is its business.
//
// # Flow control
//
// A chunk counts as taken when the target's application asks for what comes after
// it. At most [Window] bytes are on their way to that, so that a slow importer
// slows the exporter down, and neither side holds more than that in memory for a
// move, or one chunk if that is larger, and at the source what is being gathered.
// Small records are gathered for a second at most, so that a source that sends
// little is not taken for one that hangs.
//
// # Time
//
// Both ends give up after a time without progress. To the source, progress is a
// record that its application sends or that the target's takes; to the target, a
// chunk that arrives or is taken. So whoever hangs, somebody notices, and both
// hear of it: an Outgoing or Incoming that has failed ends its context, with the
// reason as the cause.
//
// # Who is let in
//
// A server takes in what the leader has announced, and knows it by the ticket. A
// source may be told of the move before the target is, so that one with an
// unknown ticket is kept waiting for a moment, and comes again. Tickets are
// compared in constant time. Nothing that a source sends is read before it is let
// in: it says who it is with the metadata of its call.
//
// A ticket is worth as much as the way on which it came. The leader tells it to
// whoever holds the name of the source or the target, and does not ask them to
// prove it: the network to the managers must be one that can be trusted.
package statemove
