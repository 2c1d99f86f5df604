//go:build unix

package realservice

import (
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

// A Redis is an empty server.
type Redis struct {
	*Server
	Addr string // host:port
}

// redisAttempts is the maximum number of attempts if another process takes the port.
const redisAttempts = 5

// StartRedis starts a Redis without persistence that ends with the test.
func StartRedis(t testing.TB, options ...string) *Redis {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		skip(t, "Redis", "redis-server")
	}
	for range redisAttempts {
		port := freePort(t)
		args := append([]string{
			"--port", port, "--bind", "127.0.0.1", "--dir", directory(t),
			"--save", "", "--appendonly", "no",
		}, options...)
		cmd := exec.Command(program, args...)
		cmd.SysProcAttr = attributes()
		if server := start(t, cmd, syscall.SIGKILL, "Ready to accept connections"); server != nil {
			return &Redis{server, net.JoinHostPort("127.0.0.1", port)}
		}
	}
	t.Fatalf("Redis does not start")
	return nil
}

// freePort returns a free port.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it is unused
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
