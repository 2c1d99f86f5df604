//go:build linux

package attacks

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/server/proc"
)

// newGateway starts a gateway to the honest owners, and returns a testbed with the same honest
// clients and the gateway as the process under attack.
func (c *testbed) newGateway(t *testing.T, args ...string) *testbed {
	t.Helper()
	ports, err := proc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	process := launch{name: "gateway", program: leaseholdProgram(), args: append([]string{
		"gateway", "--managers", c.addr, "-n", namespace, "--key", "header:X-User", "--listen", ports[0], "--health-listen", "",
	}, args...)}.start(t)
	eventually(t, "the gateway forwards", func(ctx context.Context) error {
		_, err := forward(ctx, ports[0], "", "")
		return err
	})
	return &testbed{addr: ports[0], process: process, clients: c.clients}
}

// forward sends a body through a gateway, checks that it is echoed, and returns the headers of
// the response.
func forward(ctx context.Context, gateway, body, encoding string) (http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+gateway, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-User", "alice")
	r.Header.Set("Content-Encoding", encoding)
	caller := &http.Transport{DisableCompression: true}
	defer caller.CloseIdleConnections()
	answer, err := caller.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // the body was read
	back, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK || string(back) != body || err != nil {
		return nil, fmt.Errorf("status %d, body %q: %w", answer.StatusCode, back, err)
	}
	return answer.Header, nil
}

// TestGateway: a gateway limits connections like a manager, and does not decompress bodies. The
// body is labelled gzip but is not compressed, so that decompressing it would fail.
func TestGateway(t *testing.T) {
	t.Parallel()
	c := newTestbed(t, settings{})
	gateway := c.newGateway(t)
	t.Run("silent connections", func(t *testing.T) { gateway.endure(t, connFlood{Count: silentConns}) })
	t.Run("compressed bodies", func(t *testing.T) {
		c.count()
		headers, err := forward(t.Context(), gateway.addr, "a bomb", "gzip")
		if err != nil {
			t.Fatal(err)
		}
		if encodeHeaders, asked := headers.Get("Content-Encoding"), headers.Get("Asked-For"); encodeHeaders != "gzip" || asked != "" {
			t.Errorf("Content-Encoding %q, and the gateway sent Accept-Encoding %q", encodeHeaders, asked)
		}
	})
}
