//go:build linux

package attacks

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// installTrust gives a party the CA certificates and revocation lists of the manager.
func (k *authority) installTrust(t *testing.T, party string) string {
	t.Helper()
	for _, name := range []string{"ca.crt", "crl.pem"} {
		text, err := os.ReadFile(k.manager(name))
		if err != nil {
			t.Fatal(err)
		}
		k.write(t, k.ca.Path(party+"/"+name), string(text))
	}
	return k.ca.Path(party)
}

// newAgent starts an agent, and returns a testbed with the same honest clients and the agent
// as the process under attack.
func (c *testbed) newAgent(t *testing.T) *testbed {
	t.Helper()
	ports, err := proc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	process := launch{name: "agent", program: leaseholdProgram(), args: []string{
		"agent", "--listen", ports[0], "--managers", c.addr, "--tls-dir", c.secured.installTrust(t, "owner/other/agent"), "--access", c.secured.policy,
	}}.start(t)
	a := &testbed{addr: ports[0], http: ports[0], process: process, clients: c.clients, secured: c.secured, adjacent: true}
	eventually(t, "the agent accepts connections", func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", a.addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	return a
}

// TestAgent: a program can only join under the names that the policy allows for its identity.
func TestAgent(t *testing.T) {
	t.Parallel()
	k := newAuthority(t)
	c := newTestbed(t, settings{secured: k})
	a := c.newAgent(t)
	a.refusesHandshakes(t, k, "agent", a.addr, "http/1.1")
	join := func(name, want, owner string, cert func(*testing.T, *authority) *tls.Certificate, headers ...string) pageCase {
		body := `{"namespace":"honest","addr":"127.0.0.1:1","name":"` + owner + `"}`
		return pageCase{name: name, method: "POST", path: "/v1/owners", cert: cert, headers: headers, body: body, want: want}
	}
	mallory, traitor := certificateOf("owner/other/mallory"), certificateOf("owner/honest/traitor")
	token := "Authorization: Bearer " + k.tokens["reader"]
	for _, test := range []pageCase{
		join("agent: join without credentials", "401", "owner-0", nil),
		join("agent: another's name", "403", "owner-0", traitor),
		join("agent: another namespace", "403", "mallory", mallory),
		join("agent: join as a lookup", "403", "owner-0", certificateOf("lookup/honest")),
		join("agent: join as an operator", "403", "owner-0", certificateOf("operator/chief")),
		join("agent: join with a token", "403", "owner-0", nil, token),
		join("agent: join with an unknown token", "401", "owner-0", nil, "Authorization: Bearer leasehold_"+strings.Repeat("x", 43)),
		join("agent: join from a web page", "403", "traitor", traitor, "Origin: https://evil.example"),
		join("agent: cross-site request", "403", "traitor", traitor, "Sec-Fetch-Site: cross-site"),
		{name: "agent: foreign Host header", path: "/v1/status", host: "evil.example", cert: mallory, want: "403"},
		{name: "agent: status without credentials", path: "/v1/status", want: "401"},
		{name: "agent: metrics without credentials", path: "/metrics", want: "401"},
		{name: "agent: a key of another namespace", path: "/v1/namespaces/honest/find?name=alice", cert: mallory, want: "403"},
		{name: "agent: path traversal", path: "/v1/../../etc/passwd", cert: mallory, want: "301|307|400|404"},
		{name: "agent: oversized headers", path: "/healthz", headers: []string{"X: " + strings.Repeat("x", 40<<10)}, want: "431"},
	} {
		a.attack(t, test.name, func(t *testing.T) {
			if got := a.page(t, &test, "127.0.0.1"); !got.hasStatus(test.want) {
				t.Errorf("status %d, want %s", got.code, test.want)
			}
		})
	}
	t.Run("agent: silent connections", func(t *testing.T) { a.endure(t, connFlood{Count: 1000}) })
}

// TestGatewayOverTLS: a gateway with TLS rejects older versions and plain text.
func TestGatewayOverTLS(t *testing.T) {
	t.Parallel()
	k := newAuthority(t)
	c := newTestbed(t, settings{secured: k})
	ports, err := proc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := k.ca.Path("lookup/honest")
	process := launch{name: "gateway", program: leaseholdProgram(), args: []string{
		"gateway", "--managers", c.addr, "-n", namespace, "--key", "header:X-User", "--listen", ports[0], "--health-listen", "", "--tls-dir", dir,
		"--front-tls", "--front-cert", k.manager("tls.crt"), "--front-key", k.manager("tls.key"),
	}}.start(t)
	g := &testbed{addr: ports[0], http: ports[0], process: process, clients: c.clients, secured: k, adjacent: true}
	eventually(t, "the gateway accepts connections", func(ctx context.Context) error {
		conn, err := (&tls.Dialer{Config: k.clientTLS(nil, "http/1.1")}).DialContext(ctx, "tcp", g.addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	for name, tune := range map[string]func(*tls.Config){
		"gateway: TLS 1.2": versions(tls.VersionTLS12, tls.VersionTLS12), "gateway: TLS 1.0 to 1.1": versions(tls.VersionTLS10, tls.VersionTLS11),
	} {
		g.attack(t, name, func(t *testing.T) {
			config := k.clientTLS(nil, "http/1.1")
			tune(config)
			if got := handshake(t, g.addr, config); got != "protocol version not supported" {
				t.Errorf("outcome: %s", got)
			}
		})
	}
	g.attack(t, "gateway: plain text", func(t *testing.T) {
		if got := exchange(t, g.addr, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 400") {
			t.Errorf("outcome: %s", got)
		}
	})
	for _, test := range []pageCase{
		{name: "gateway: oversized headers", path: "/", headers: []string{"X-User: alice", "X: " + strings.Repeat("x", 2<<20)}, want: "431"},
		{name: "gateway: two Content-Length headers", method: "POST", path: "/", headers: []string{"Content-Length: 1", "Content-Length: 2"}, want: "400"},
		{name: "gateway: no key", path: "/", want: "400"},
	} {
		g.attack(t, test.name, func(t *testing.T) {
			if got := g.page(t, &test, "127.0.0.1"); !got.hasStatus(test.want) {
				t.Errorf("status %d, want %s", got.code, test.want)
			}
		})
	}
	t.Run("gateway: silent connections", func(t *testing.T) { g.endure(t, connFlood{Count: 1000}) })
}

// TestMover: an owner accepts state only in transfers that its manager announced.
func TestMover(t *testing.T) {
	t.Parallel()
	k := newAuthority(t)
	c := newTestbed(t, settings{secured: k})
	dir := k.installTrust(t, "owner/other/mover")
	keeper, err := secure.Open(secure.Config{Cert: dir + "/tls.crt", Key: dir + "/tls.key", Roots: dir + "/ca.crt", Revoked: dir + "/crl.pem"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keeper.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o, err := owner.Join(shortContext(t), owner.Config{
		Namespace: other, Managers: []string{c.addr}, Addr: "127.0.0.1:1", Name: "mover", Credentials: keeper.Client(), Logger: discardLogger(),
		Mover: &owner.Mover{
			Export:   func(context.Context, *owner.Export) error { return nil },
			Import:   func(context.Context, *owner.Import) (func(leasehold.Lease), error) { return nil, nil },
			Listener: listener, Credentials: keeper.Client(), ServerCredentials: keeper.ServerWith(secure.Required),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close(context.Background()) }) // its state is not needed
	m := &testbed{addr: listener.Addr().String(), process: c.process, clients: c.clients, secured: k, adjacent: true}
	m.refusesHandshakes(t, k, "owner", m.addr, "h2")
	m.attack(t, "owner: no certificate", func(t *testing.T) {
		if got := handshake(t, m.addr, k.clientTLS(nil, "h2")); got != "certificate required" {
			t.Errorf("outcome: %s", got)
		}
	})
	opening := func(change func(*leaseholdv1.TransferOpening)) string {
		session := o.Session()
		first := &leaseholdv1.TransferOpening{Version: wire.Version, Namespace: other, Session: session[:], Ticket: make([]byte, 16)}
		change(first)
		text, err := proto.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const header, transfer = "leasehold-opening-bin", leaseholdv1.MoverService_Transfer_FullMethodName
	for _, test := range []struct {
		name   string
		header []string
		option []grpc.CallOption
		want   codes.Code
	}{
		{"owner: no opening", nil, nil, codes.InvalidArgument},
		{"owner: two openings", []string{header, "", header, ""}, nil, codes.InvalidArgument},
		{"owner: a malformed opening", []string{header, "\xff\xff"}, nil, codes.InvalidArgument},
		{"owner: an unknown ticket", []string{header, opening(func(*leaseholdv1.TransferOpening) {})}, nil, codes.PermissionDenied},
		{"owner: another's session", []string{header, opening(func(o *leaseholdv1.TransferOpening) { o.Session = make([]byte, 16) })}, nil, codes.FailedPrecondition},
		{"owner: another namespace", []string{header, opening(func(o *leaseholdv1.TransferOpening) { o.Namespace = namespace })}, nil, codes.FailedPrecondition},
		{"owner: a compression bomb", []string{header, opening(func(*leaseholdv1.TransferOpening) {})}, []grpc.CallOption{grpc.UseCompressor(gzip.Name)}, codes.Unimplemented},
	} {
		m.attack(t, test.name, func(t *testing.T) {
			ctx := metadata.AppendToOutgoingContext(shortContext(t), test.header...)
			conn := m.dialWith(t, k.certificate(t, "owner/other/mallory"), grpc.WithDefaultCallOptions(test.option...))
			if err := call(ctx, conn, transfer, &leaseholdv1.TransferRequest{}); status.Code(err) != test.want {
				t.Errorf("outcome: %v; want %v", err, test.want)
			}
		})
	}
}
