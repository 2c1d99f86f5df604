package proc

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
)

// Ports of managers are below those that systems hand out by themselves, to
// callers that connect for example: one of those could otherwise sit on the
// port of a manager that is being restarted.
const (
	firstPort = 20_000
	ports     = 12_000
	// apart is how far processes that were started one after the other keep
	// from each other.
	apart = 131
)

// turn is which port is tried next. A port that was found is not listened on
// yet, and whoever else looks for one must not find it: so this process goes
// round through all ports, and others of this system begin elsewhere, as a rule.
var turn = struct {
	sync.Mutex
	next int
}{next: os.Getpid() * apart % ports}

// FreePorts finds n addresses on loopback on which nobody listens, and which it
// has not found before, until it is through with all.
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
			continue // somebody has it
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
