// Package fleasenet carries the messages of Flease between processes: packets, and three
// networks for them, [UDP], [TCP] and [Memory].
//
// A network may lose, delay, duplicate and reorder packets. The machine in internal/core/machine/flease
// tolerates this and retries. So no send blocks on a peer: a packet that finds a full queue is dropped
// and counted.
//
// # A packet
//
// All numbers are little-endian.
//
//	header    magic "LF", version 2, flags                          4 bytes
//	          from, to: processes                                   4 + 4
//	          incarnation of the sender, number of the packet       8 + 8
//	          fingerprint of the sender's configuration              8
//	body      incarnation of the addressee, Sent, Echo              8 + 8 + 8
//	          messages, as many as fit
//	trailer   tag of AES-256-GCM, or without a key the XXH64 of all 16 or 8
//
// The flags: the packet is encrypted, 1; the sender does not take part yet, 2; the addressee
// must give way to another process with its id, 4. A packet with another fingerprint goes to Config.Strange
// instead of Receive; its messages are not decoded.
//
// The encoding of a message omits fields that follow from the packet or the previous message;
// messages.go has the layout. Most reads take 6 bytes and their names, most writes 23. Plain fields
// would take 22 and 66. Only reads have names. This halves the number of packets, which
// dominate the cost: a system call, the setup of the cipher and a wake-up each.
//
// # Encryption and replay protection
//
// The key of a sender is derived from the shared secret, its process and its incarnation, which is
// random and new with every start. A nonce is the addressee and the packet's number, and no number
// is used twice. Per peer, a receiver keeps a window of received numbers for the newest incarnation and the
// three others with the latest packets. It drops duplicates and packets older than the window. The newest
// incarnation is the one with the highest Sent, which a replay cannot change.
//
// An attacker can replay packets of an incarnation that the receiver has evicted, or from before its
// start. They are authentic but stale; the machine discards them, because they are
// addressed to another incarnation of the receiver.
//
// A process with the secret can impersonate any other. Without a secret packets have only a checksum. That
// is allowed if all addresses are on the loopback, and on TCP with mutual TLS.
//
// # Cost
//
// Neither side allocates memory per message. The arguments of Receive, including the names, are in
// the read buffer and invalid after it returns.
package fleasenet
