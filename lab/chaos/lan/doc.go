// Package lan is a network inside this computer with faults in each direction between any two hosts.
//
// A host is a network namespace with a TUN device, whose other end is a file that this process reads. A
// switch (switch.go) forwards all packets: late, twice, in another order, or not at all (trouble.go).
// Processes on a host have ordinary sockets, and the TCP of the system.
//
// # Why not veth and tc
//
// Traffic control needs netem, which the kernels of many small virtual machines lack. It works on an
// interface and not on the path between two hosts, and its randomness has no seed. Bridges, named
// namespaces and queueing disciplines outlive a process that is killed; here everything ends with the
// process. The price is two system calls of this process for each packet.
//
// It needs Linux, and root or CAP_NET_ADMIN and CAP_SYS_ADMIN: without these, [Again] makes a
// process root of namespaces of its own.
package lan
