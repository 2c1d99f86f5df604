package cast

import (
	"fmt"
	"net"
)

// FreePorts returns addresses on the loopback that were free a moment ago, for
// TCP and UDP. Nothing keeps others from taking them; members then fail to
// start, and say why.
func FreePorts(n int) ([]string, error) {
	addrs := make([]string, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer l.Close() //nolint:errcheck,gocritic // all are held until the last is found, so that they differ
		addr := l.Addr().String()
		u, err := net.ListenPacket("udp", addr)
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer u.Close() //nolint:errcheck,gocritic // the same
		addrs = append(addrs, addr)
	}
	return addrs, nil
}
