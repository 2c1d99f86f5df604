// Package lan is a small network of its own inside this computer, in which
// everything can go wrong, in each direction between any two of its hosts.
//
// A host is a network namespace with one interface. The interface is a TUN
// device, whose other end is a file that this process reads: so all packets,
// of TCP and UDP alike, come through here, and a switch (switch.go) passes them
// on, late, twice, in another order, or not at all, as the troubles of the
// moment say (trouble.go). Processes that are started at a host know nothing of
// that: they have sockets as everywhere, and the system's own TCP.
//
// # Why not veth and tc
//
// Traffic control can do most of that, where the kernel has netem, which many do
// not have, those of small virtual machines among them. What it does it does to an
// interface, and not to what goes from one host to another. What it draws has no
// seed. And bridges, namespaces with names and queueing disciplines outlive a
// process that is killed. Here nothing has a name, and all of it is gone with the
// process that made it. The price is that each packet costs two system calls
// of this process, which is nothing for leases.
//
// It takes Linux, and root or CAP_NET_ADMIN and CAP_SYS_ADMIN: without these, [Again] makes a
// process root of namespaces of its own.
package lan
