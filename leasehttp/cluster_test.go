package leasehttp_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/owner"
)

// user is the source that most tests use, and alice the name.
var user = leasehttp.Header("X-User")

const alice = "alice"

// join makes a node a server behind the middleware.
func join(t *testing.T, n *leaseholdtest.Node, handler http.Handler) *owner.Owner {
	t.Helper()
	o := n.Join(owner.Config{})
	n.Serve(leasehttp.Middleware(o, user)(handler))
	return o
}

// say responds with a text.
func say(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

// base is a transport from a node, with a dial timeout.
func base(n *leaseholdtest.Node) *http.Transport {
	b := &http.Transport{
		ExpectContinueTimeout: time.Second,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			return n.DialContext(ctx, network, addr)
		},
	}
	n.Cleanup(func(context.Context) { b.CloseIdleConnections() })
	return b
}

// route is a Transport on a node.
func route(t *testing.T, n *leaseholdtest.Node, cfg leasehttp.TransportConfig) *leasehttp.Transport {
	t.Helper()
	cfg.Lookup, cfg.Base = n.Lookup(), base(n)
	if cfg.Key.String() == "" {
		cfg.Key = user
	}
	transport, err := leasehttp.NewTransport(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

const gateway = "http://gateway:8080"

// startGateway runs a Proxy.
func startGateway(t *testing.T, c *leaseholdtest.Cluster, cfg leasehttp.TransportConfig, proxy leasehttp.ProxyConfig) *leaseholdtest.Node {
	t.Helper()
	n := c.Node("gateway")
	proxy.Transport = route(t, n, cfg)
	p, err := leasehttp.NewProxy(proxy)
	if err != nil {
		t.Fatal(err)
	}
	n.Serve(p)
	return n
}

// An answer is a response with its body.
type answer struct {
	status int
	header http.Header
	body   string
}

// request returns a request for alice.
func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User", alice)
	return r
}

// do sends a request that must have a response.
func do(t *testing.T, via http.RoundTripper, r *http.Request) answer {
	t.Helper()
	a, err := try(via, r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func try(via http.RoundTripper, r *http.Request) (answer, error) {
	got, err := via.RoundTrip(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, got.Header, string(body)}, err
}

// two runs a test with two servers, the owner of alice and the other, after all grants. Each
// responds with its name, unless handler is given.
func two(t *testing.T, handler func(name string) http.Handler, test func(t *testing.T, c *leaseholdtest.Cluster, has, other *leaseholdtest.Node)) {
	t.Helper()
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		if handler == nil {
			handler = say
		}
		a, b := c.Node("a"), c.Node("b")
		join(t, a, handler("a"))
		join(t, b, handler("b"))
		c.Settle()
		if name, _ := c.Owner(leasehold.KeyOf(alice)); name == "b" {
			a, b = b, a
		}
		test(t, c, a, b)
	})
}
