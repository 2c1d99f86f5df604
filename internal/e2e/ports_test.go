//go:build unix

package e2e

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
)

// Ports are below those that systems hand out by themselves, to callers that
// connect for example: one of those could otherwise sit on the port of a process
// that is being restarted.
const (
	firstPort = 10_000
	ports     = 20_000
)

// lastPort counts the ports that were looked at. It starts somewhere, so that
// two runs of these tests keep out of each other's way, and never looks at one
// twice, so that two tests do.
var lastPort = func() *atomic.Int64 {
	n := new(atomic.Int64)
	n.Store(rand.Int64N(ports))
	return n
}()

// freeAddr returns an address on loopback that nobody listens on, and that no
// other test gets.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range ports {
		port := firstPort + int(lastPort.Add(1)%ports)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close() // it was never used
			return addr
		}
	}
	t.Fatal("found no free port on 127.0.0.1")
	return ""
}
