// Package wire converts protocol messages, tables and errors to and from protobuf. The comments in
// proto/leasehold/v1 are the reference of the format.
//
// From functions encode values of this process without validation. To functions decode data of a peer or store
// and do not trust it: they take linear time, check limits before they allocate, and return either a value that
// passes the protocol's validation or an error of kind Invalid or Limit. They keep no reference to the
// message.
//
// # Holders and pointers
//
// Table entries compare holders by pointer. Equal holders of one message become one *table.Holder, so
// ranges that were one range before encoding are one range after decoding. Equal holders of different messages
// are different pointers. That is safe: adjacent ranges merge only if they have the same generation. One change
// grants a generation, so all ranges with it have their holder from that change, or from one later
// snapshot. Hence a table built from any snapshot and the changes after it has the same ranges as the
// leader's. Code that compares holders of two tables, or of a table and a message, must compare them by
// value.
//
// All functions are safe for concurrent use if their arguments are not modified meanwhile.
package wire
