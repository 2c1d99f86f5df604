//go:build linux

package attacks

import (
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// TestSilenceOverTLS: the same with TLS, before, during and after the handshake.
func TestSilenceOverTLS(t *testing.T) {
	t.Parallel()
	c := newTestbed(t, settings{secured: newAuthority(t)})
	hello := []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
	for _, test := range []struct {
		name string
		connFlood
	}{
		{"no bytes", connFlood{Count: silentConns}},
		{"the beginning of a handshake", connFlood{Count: silentConns, Payload: hello}},
		{"a handshake only", connFlood{Count: 1000, TLS: true}},
		{"a handshake and an HTTP/2 preface", connFlood{Count: 1000, TLS: true, Payload: []byte(http2.ClientPreface)}},
		{"one byte at a time", connFlood{Count: 1000, Payload: append(hello, make([]byte, 100)...), Pause: 300 * time.Millisecond}},
		{"plain text", connFlood{Count: 1000, Payload: []byte(http2.ClientPreface)}},
	} {
		t.Run(test.name, func(t *testing.T) { c.endure(t, test.connFlood) })
	}
}
