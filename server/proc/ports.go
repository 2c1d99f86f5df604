package proc

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
)

// Ports of managers are below the ephemeral ports of common systems: an outgoing connection
// could otherwise take the port of a manager that is being restarted.
const (
	firstPort = 20_000
	ports     = 12_000
	apart     = 131 // between the first ports of processes with adjacent process ids
)

// turn has the port that is tried next. A port that was found is not listened on yet, and
// must not be found again: so this process cycles through all ports, and other processes
// usually begin elsewhere.
var turn = struct {
	sync.Mutex
	next int
}{next: os.Getpid() * apart % ports}

// FreePorts returns n loopback addresses without a listener. None is returned twice until
// all ports have been tried.
func FreePorts(n int) ([]string, error) {
	if n > ports {
		return nil, fmt.Errorf("%d ports: there are %d from %d on", n, ports, firstPort)
	}
	turn.Lock()
	defer turn.Unlock()
	var addrs []string
	for range ports {
		if len(addrs) == n {
			break
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+turn.next))
		turn.next = (turn.next + 1) % ports
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue // it is in use
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
		addrs = append(addrs, addr)
	}
	if len(addrs) < n {
		return nil, fmt.Errorf("found %d free ports between %d and %d on 127.0.0.1, want %d", len(addrs), firstPort, firstPort+ports-1, n)
	}
	return addrs, nil
}
