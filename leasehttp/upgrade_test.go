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

// switches responds to upgrade requests with these lines, and keeps the connection open until the
// client closes it.
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
		defer conn.Close() //nolint:errcheck // a hijacked connection
		_, _ = fmt.Fprintf(buffered, "HTTP/1.1 101 Switching Protocols\r\n%s\r\n", lines)
		_ = buffered.Flush()
		_, _ = io.Copy(io.Discard, conn)
	}
}

// A failed upgrade frees its slot.
func TestFailedUpgradeFreesItsSlot(t *testing.T) {
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

// An upgraded connection is outstanding until it is closed.
func TestUpgradedConnectionIsOutstanding(t *testing.T) {
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
