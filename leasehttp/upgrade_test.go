package leasehttp_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// switches answers requests that ask for an upgrade with these lines, and then keeps
// the connection until its other end closes it.
func switches(lines string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, "served")
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // nobody needs to know
		_, _ = fmt.Fprintf(buffered, "HTTP/1.1 101 Switching Protocols\r\n%s\r\n", lines)
		_ = buffered.Flush()
		_, _ = io.Copy(io.Discard, conn)
	}
}

// TestUpgradeThatFails: whatever a caller and a server make of an upgrade, when it is
// over the next request has its place.
func TestUpgradeThatFails(t *testing.T) {
	for name, lines := range map[string]string{
		"to one of several":       "Connection: Upgrade\r\nUpgrade: websocket\r\n",
		"to something unreadable": "Connection: Upgrade\r\nUpgrade: \xff\r\n",
		"to nothing":              "",
	} {
		t.Run(name, func(t *testing.T) {
			behind(t, switches(lines), leasehttp.TransportConfig{MaxOutstanding: 1}, leasehttp.ProxyConfig{}, func(t *testing.T, c *leaseholdtest.Cluster, caller *http.Transport) {
				r := request(t, "GET", gateway, "")
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", "websocket, x")
				if got := do(t, caller, r); got.status != http.StatusBadGateway {
					t.Errorf("the upgrade: %v", got)
				}
				c.Advance(time.Second)
				if got := do(t, caller, request(t, "GET", gateway, "")); got.body != "served" {
					t.Errorf("the next request: %v", got)
				}
			})
		})
	}
}

// TestUpgradeMakesRoom: a connection that was switched counts until it is closed, and
// no longer.
func TestUpgradeMakesRoom(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		join(t, c.Node("a"), switches("Connection: Upgrade\r\nUpgrade: x\r\n"))
		c.Settle()
		transport := route(t, c.Node("caller"), leasehttp.TransportConfig{MaxOutstanding: 1})
		r := request(t, "GET", "http://presence/", "")
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "x")
		line, err := transport.RoundTrip(r)
		if err != nil || line.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%v, %v", line, err)
		}
		if _, err := try(transport, request(t, "GET", "http://presence/", "")); leasehold.KindOf(err) != leasehold.ErrLimit {
			t.Errorf("while it is open: %v", err)
		}
		_ = line.Body.Close()
		if got := do(t, transport, request(t, "GET", "http://presence/", "")); got.body != "served" {
			t.Errorf("when it is closed: %v", got)
		}
	})
}
