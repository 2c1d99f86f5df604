// Package wire turns protocol messages, tables and errors into protobuf and
// back. The comments in proto/leasehold/v1 are the reference of the format.
//
// From functions write what this process believes in and do not check it. To
// functions read what a peer or a store has sent: they trust nothing, take
// linear time, look at the limits before they allocate, and return either
// something that passes the protocol's own checks or an error of kind Invalid
// or Limit. They keep no reference to the message.
//
// # Holders and pointers
//
// Table entries compare holders by pointer. Within one message, equal holders
// become one *table.Holder, so that ranges which were one range before they
// were written are one range again. Holders of different messages are different
// pointers, even if equal, and that is harmless: two neighbouring ranges merge
// only if they have the same generation, a generation is granted by one change,
// and so every range that has it got its holder from that change or from one
// snapshot taken after it. Hence a table put together from any snapshot and the
// changes after it has the same ranges as the leader's. Whoever compares holders
// of two tables, or of a table and a message, compares them by value.
//
// All functions are safe for concurrent use as long as nobody changes their
// arguments meanwhile.
package wire
