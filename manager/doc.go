// Package manager runs one manager of a group: the process that grants leases,
// keeps the lease table in a store, and tells owners and lookups about it.
//
// A group is any number of managers that share a store. One leads; the others
// stand by, serve lookups, forward what only the leader can do, and take over
// when the leader dies. Most people run managers with the leasehold command;
// this package is for those who want one inside a process of their own, with a
// store or a partitioning policy of their own choice.
//
// # How it is built
//
// Everything that is decided is decided by the machine in
// internal/machine/node, on one goroutine. This package is what carries the
// decisions out: it turns messages into events and actions into messages, and
// asks the store. Nothing here judges time, and nothing here knows more than
// the machine about who holds what.
//
//   - What is sent to owners and lookups goes through internal/runtime/broadcast: bounded
//     queues, one sender per stream, and waves for thousands of lookups.
//   - Who may call what is decided by package access, if there is a Config.Access,
//     before a handler sees a message. What handlers do about it is to show each
//     caller only its namespaces, and to say whose a call is that they forward.
//   - Each question to the store has a goroutine and a deadline. The machine
//     has few under way at a time, and hears of each how it ended.
package manager
