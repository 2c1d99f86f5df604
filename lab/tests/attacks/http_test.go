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

// The address for people and their tools holds out as the other does.
func TestHTTP(t *testing.T) {
	t.Parallel()
	c := newCastle(t, settings{})
	t.Run("they say nothing", func(t *testing.T) { c.endureAt(t, c.http, crowd{Count: silent}) })
	t.Run("they begin a request", func(t *testing.T) {
		c.endureAt(t, c.http, crowd{Count: 1000, Say: []byte("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 100)), Slow: 200 * time.Millisecond})
	})
	const get = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n"
	for _, test := range []struct {
		name, say string
		want      int // the status; 0 if the connection is closed without one
	}{
		{"a request, to begin with", get + "\r\n", 200},
		{"headers that are too long", get + "X: " + strings.Repeat("x", 32<<10) + "\r\n\r\n", 431},
		{"too many headers", get + strings.Repeat("X: 1\r\n", 10_000) + "\r\n", 431},
		{"headers that never end", get + "X: " + strings.Repeat("x", 4<<20), 431},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400},
		{"two hosts", get + "Host: another\r\n\r\n", 400},
		{"two lengths", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
		{"a length that is none", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400},
		{"a packing that there is not", "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
		{"a request in HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
		{"rubbish", strings.Repeat("\xff", 1000) + "\r\n\r\n", 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.count()
			c.during(t, frameCost, func() {
				if got := ask(t, c.http, test.say); got != test.want {
					t.Errorf("status %d, want %d", got, test.want)
				}
			})
		})
	}
}

// ask says something, and returns the status of the answer, 0 if there is none.
func ask(t *testing.T, addr, say string) int {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // there is nothing left to say
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, say) // it may have heard enough before the end
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close() // the status is enough
	return answer.StatusCode
}
