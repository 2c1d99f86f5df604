//go:build linux

package attacks

import (
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// With TLS, silence costs no more, whenever it begins.
func TestSilenceOverTLS(t *testing.T) {
	t.Parallel()
	c := newCastle(t, settings{secured: newKeep(t)})
	hello := []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
	for _, test := range []struct {
		name string
		crowd
	}{
		{"they say nothing", crowd{Count: silent}},
		{"they begin to shake hands", crowd{Count: silent, Say: hello}},
		{"they shake hands, and say nothing", crowd{Count: 1000, TLS: true}},
		{"they shake hands, and begin to speak HTTP/2", crowd{Count: 1000, TLS: true, Say: []byte(http2.ClientPreface)}},
		{"they say a byte now and then", crowd{Count: 1000, Say: append(hello, make([]byte, 100)...), Slow: 300 * time.Millisecond}},
		{"they do not speak TLS", crowd{Count: 1000, Say: []byte(http2.ClientPreface)}},
	} {
		t.Run(test.name, func(t *testing.T) { c.endure(t, test.crowd) })
	}
}
