// Package supervise is the protocol between a process and its supervisor, "leasehold run", over a socket
// that the process inherits.
//
// The process registers each of its sessions and receives the SHA-256 of a random token, which it announces
// to the leader. The supervisor has the token. When it has waited for the process, it presents the token,
// which proves to the leader that no code of the session runs.
//
// # Connections
//
// The inherited socket is shared by all processes that inherit it, so it carries only hello messages. A
// hello has one end of a new socket pair, and all other messages use that pair. The kernel adds the sender's
// process ID to each message (SCM_CREDENTIALS). The supervisor refuses every process but its direct child:
// only the end of that one is visible to it. A privileged process can forge the ID; it could as well attach
// to the child as a debugger.
//
// All messages are JSON with a version, at most maxMessage bytes, one per packet.
//
// # What if
//
//   - there is no supervisor: the environment variable is missing, and Register does nothing.
//   - the process executes another program: it keeps its ID. Before the first session the new program inherits
//     the socket. After that the socket is closed on exec, and the new program gets an error. The sessions of
//     the old program are reported when the process ends, or expire before.
//   - the process has closed the socket, or the descriptor is now another file: the variable contains the
//     inode of the socket, so Register detects it and returns an error.
//   - a child of the process, a program in the background or a daemon, registers: it is refused, because the
//     supervisor cannot wait for it.
//   - the supervisor ends first: Register returns an error. Registered sessions expire as without it.
//   - the computer is suspended, or copied: the supervisor drops the sessions, which expire.
//   - the process closes many owners without an acknowledgement: they remain registered, and at the limit a new
//     session replaces the oldest.
//   - the supervisor hangs: Register returns an error after a second.
//
// After each error the session continues, unsupervised.
//
// The package needs Linux. On other systems there is no supervisor.
package supervise
