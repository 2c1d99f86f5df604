// Package fleasenet carries the messages of Flease between processes: packets,
// and three networks for them, [UDP], [TCP] and [Memory].
//
// A network may lose, delay, repeat and reorder packets; the machine in
// internal/core/machine/flease puts up with all of it, and sends again what matters.
// So nothing here waits for anybody: what finds no room is lost and counted.
//
// # A packet
//
// All numbers are little-endian.
//
//	header    magic "LF", version 2, marks                          4 bytes
//	          from, to: processes                                   4 + 4
//	          incarnation of the sender, number of the packet       8 + 8
//	          fingerprint of what the sender was told               8
//	body      incarnation of the addressee, Sent, Echo              8 + 8 + 8
//	          messages, as many as fit
//	trailer   tag of AES-256-GCM, or without a key the XXH64 of all 16 or 8
//
// The marks say whether it is sealed, 1, whether the sender waits to take part, 2,
// and whether the addressee is to give way to another process with its id, 4. A packet of another fingerprint goes to Strange and not to Receive; its
// messages are not read.
//
// A message is written as what is not known from the packet or from the message
// before; messages.go has the layout. Most reads take 6 bytes and their names,
// most writes 23, where plain fields would take 22 and 66, and only reads have
// names. That halves the number of packets, and it is packets that cost: a system
// call, a cipher's start, a wake-up.
//
// # What protects it
//
// The key of a sender is derived from the shared secret, its process and its
// incarnation, which is random and new with every start. A nonce is the
// addressee and the packet's number, and no number is used twice. A receiver
// remembers, for the newest incarnation of each peer and for three others that it
// heard last, which numbers it has had, and drops those that it has had and those
// that are older than all it remembers. The newest is the one with the highest
// Sent, which no replay can change.
//
// An incarnation that a receiver has forgotten, or from before it started, can be
// replayed to it. What it then hears is authentic but old; the machine voids it,
// because it was not meant for the receiver's present incarnation.
//
// Whoever has the secret can speak for any process. Without a secret there is
// only a checksum, against accidents; that is allowed where all addresses are on
// the loopback, and on TCP where both sides show certificates.
//
// # What it costs
//
// Nothing is allocated per message, on either side. What Receive is given,
// the names too, lies in the buffer that the packet was read into, and is gone
// when Receive returns.
package fleasenet
