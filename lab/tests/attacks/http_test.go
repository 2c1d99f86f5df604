//go:build linux

package attacks

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestHTTP: the HTTP port limits connections and requests like the gRPC port.
func TestHTTP(t *testing.T) {
	t.Parallel()
	c := newTestbed(t, settings{})
	t.Run("silent connections", func(t *testing.T) { c.endureAt(t, c.http, connFlood{Count: silentConns}) })
	t.Run("slow requests", func(t *testing.T) {
		c.endureAt(t, c.http, connFlood{Count: 1000, Payload: []byte("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 100)), Pause: 200 * time.Millisecond})
	})
	const get = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n"
	for _, test := range []struct {
		name, sendMessage string
		want              int // the status; 0 if the connection is closed without one
	}{
		{"a valid request", get + "\r\n", 200},
		{"oversized headers", get + "X: " + strings.Repeat("x", 32<<10) + "\r\n\r\n", 431},
		{"too many headers", get + strings.Repeat("X: 1\r\n", 10_000) + "\r\n", 431},
		{"endless headers", get + "X: " + strings.Repeat("x", 4<<20), 431},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400},
		{"two hosts", get + "Host: another\r\n\r\n", 400},
		{"two Content-Length headers", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
		{"a negative length", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400},
		{"an unknown transfer encoding", "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
		{"a request in HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
		{"rubbish", strings.Repeat("\xff", 1000) + "\r\n\r\n", 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.count()
			c.check(t, frameCost, func() {
				if got := ask(t, c.http, test.sendMessage); got != test.want {
					t.Errorf("status %d, want %d", got, test.want)
				}
			})
		})
	}
}

// ask sends bytes, and returns the status of the response; 0 if there is none.
func ask(t *testing.T, addr, sendMessage string) int {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the connection is no longer needed
	if err := conn.SetDeadline(time.Now().Add(eventTimeout)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, sendMessage) // the server may close before it has read all
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close() // the status is enough
	return answer.StatusCode
}
