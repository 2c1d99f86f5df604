// Package supervisor is "leasehold run": it starts a server as its child, and proves the server's end to the
// managers, so that its leases end at once instead of expiring.
//
// # The child
//
// The child inherits standard input and output, and every other open descriptor. It is the leader of a new
// process group, which is in the foreground of the terminal if the supervisor was: keys such as Ctrl-C reach the
// child once, from the terminal. The supervisor forwards signals that other processes send to it. When Ctrl-Z
// stops the child, the supervisor stops too, so that the shell continues both.
//
// As the first process of a container, the supervisor also waits for orphans. It ends with the status of the
// child: by the same signal, or with 128 + signal as the first process, which no signal ends.
//
// # Proof
//
// The supervisor acts when waitid reports the child's exit: then all threads of the child have ended. It
// reports each session that the child has registered and not left, until a leader acknowledges it, or
// Config.NoticeTimeout has passed: the leases expire anyway, and the container restarts sooner. A signal ends
// that wait.
//
// Children of the child may continue. They have no session: a session is memory of the child's process, and
// that is gone. A server that becomes a daemon is a child of the child, and is refused; it must run in the
// foreground. What the child has written to a socket or a pipe may arrive later: fencing tokens reject it.
//
// A process that the child has created with shared memory (clone with CLONE_VM, without CLONE_THREAD) continues
// with the memory of the session. No Go program does that.
//
// # No parent death signal
//
// If the supervisor ends first, the child continues, and its leases expire as usual when it ends. PR_SET_PDEATHSIG
// would end the child instead. It is not used: it turns a failure of the supervisor, which costs a slower
// failover, into a failure of the server; it is sent when the thread that started the child ends, not the
// process; and a child with other privileges does not have it.
//
// # Memory
//
// The program contains an etcd server, and its initialization touches most of its pages. The supervisor returns
// those pages after the start of the child: see trim.
package supervisor
