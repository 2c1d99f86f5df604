package managerd

import (
	"net"

	"github.com/leasehold-dev/leasehold/server/daemon"

	"github.com/leasehold-dev/leasehold/manager"
)

// Usage says how much is left of what the process and its store have only so much of.
func (k *KeptStore) Usage() []manager.Usage {
	var all []manager.Usage
	if k.Space != nil {
		used, most := k.Space()
		all = append(all, manager.Usage{What: "bytes of the store", Used: uint64(used), Most: uint64(most)})
	}
	if used, most, known := daemon.OpenFiles(); known {
		all = append(all, manager.Usage{What: "open files", Used: used, Most: most})
	}
	return all
}

// httpAddr is where others reach a listener, as far as it knows: one on all addresses
// has a port and no host. "" if there is none.
func httpAddr(l net.Listener) string {
	if l == nil {
		return ""
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if ok && addr.IP.IsUnspecified() {
		return (&net.TCPAddr{Port: addr.Port}).String()
	}
	return l.Addr().String()
}
