package child

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports of managers are below those that systems hand out by themselves, to
// callers that connect for example: one of those could otherwise sit on the
// port of a manager that is being restarted.
const (
	firstPort = 20_000
	lastPort  = 32_000
)

// FreePorts finds n addresses on loopback on which nobody listens. Where it
// looks is random, whatever the seed, so that two demos keep out of each
// other's way.
func FreePorts(n int) ([]string, error) {
	const attempts = 1000
	found := make(map[string]bool)
	var addrs []string
	for range attempts {
		if len(addrs) == n {
			return addrs, nil
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort)))
		if found[addr] {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue // somebody has it
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
		found[addr] = true
		addrs = append(addrs, addr)
	}
	return nil, errors.New("found no free ports between 20000 and 32000 on 127.0.0.1")
}
