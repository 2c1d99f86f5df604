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

// newGateway starts a gateway before the honest owners. What is returned is a castle of
// the same honest, with the gateway in the manager's place.
func (c *castle) newGateway(t *testing.T, args ...string) *castle {
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
	return &castle{addr: ports[0], process: process, honest: c.honest}
}

// forward sends something through a gateway, sees that it comes back, and returns the
// headers that it comes back with.
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
	defer answer.Body.Close() //nolint:errcheck // it is read
	back, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK || string(back) != body || err != nil {
		return nil, fmt.Errorf("status %d, %q came back: %w", answer.StatusCode, back, err)
	}
	return answer.Header, nil
}

// A gateway holds out as a manager does, and unpacks nothing that passes: what is sent here
// says that it is packed and is not, so that whoever unpacked it would fail.
func TestGateway(t *testing.T) {
	t.Parallel()
	c := newCastle(t, settings{})
	gateway := c.newGateway(t)
	t.Run("they say nothing", func(t *testing.T) { gateway.endure(t, crowd{Count: silent}) })
	t.Run("packed bodies", func(t *testing.T) {
		c.count()
		headers, err := forward(t.Context(), gateway.addr, "a bomb", "gzip")
		if err != nil {
			t.Fatal(err)
		}
		if packed, asked := headers.Get("Content-Encoding"), headers.Get("Asked-For"); packed != "gzip" || asked != "" {
			t.Errorf("it came back as %q, and the gateway has asked for %q", packed, asked)
		}
	})
}
