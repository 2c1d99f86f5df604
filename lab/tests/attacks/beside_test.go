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

// trusts has a party trust whom the manager trusts, and revoke what it does.
func (k *keep) trusts(t *testing.T, party string) string {
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

// newAgent starts an agent. What is returned is a castle of the same honest, with the agent
// in the manager's place.
func (c *castle) newAgent(t *testing.T) *castle {
	t.Helper()
	ports, err := proc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	process := launch{name: "agent", program: leaseholdProgram(), args: []string{
		"agent", "--listen", ports[0], "--managers", c.addr, "--tls-dir", c.secured.trusts(t, "owner/other/agent"), "--access", c.secured.policy,
	}}.start(t)
	a := &castle{addr: ports[0], http: ports[0], process: process, honest: c.honest, secured: c.secured, beside: true}
	eventually(t, "the agent answers", func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", a.addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	return a
}

// An agent lets programs be who the policy lets them be, and nobody else.
func TestAgent(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	c := newCastle(t, settings{secured: k})
	a := c.newAgent(t)
	a.refusesHandshakes(t, k, "agent", a.addr, "http/1.1")
	join := func(name, want, owner string, show func(*testing.T, *keep) *tls.Certificate, headers ...string) pageCase {
		body := `{"namespace":"honest","addr":"127.0.0.1:1","name":"` + owner + `"}`
		return pageCase{name: name, method: "POST", path: "/v1/owners", show: show, headers: headers, body: body, want: want}
	}
	mallory, traitor := of("owner/other/mallory"), of("owner/honest/traitor")
	token := "Authorization: Bearer " + k.tokens["reader"]
	for _, test := range []pageCase{
		join("agent: nobody joins", "401", "owner-0", nil),
		join("agent: another's name", "403", "owner-0", traitor),
		join("agent: another namespace", "403", "mallory", mallory),
		join("agent: a lookup joins", "403", "owner-0", of("lookup/honest")),
		join("agent: an operator joins", "403", "owner-0", of("operator/chief")),
		join("agent: a token joins", "403", "owner-0", nil, token),
		join("agent: a token that nobody knows", "401", "owner-0", nil, "Authorization: Bearer leasehold_"+strings.Repeat("x", 43)),
		join("agent: a web page joins", "403", "traitor", traitor, "Origin: https://evil.example"),
		join("agent: across sites", "403", "traitor", traitor, "Sec-Fetch-Site: cross-site"),
		{name: "agent: a foreign host", path: "/v1/status", host: "evil.example", show: mallory, want: "403"},
		{name: "agent: status for nobody", path: "/v1/status", want: "401"},
		{name: "agent: metrics for nobody", path: "/metrics", want: "401"},
		{name: "agent: a key of another namespace", path: "/v1/namespaces/honest/find?name=alice", show: mallory, want: "403"},
		{name: "agent: a way out", path: "/v1/../../etc/passwd", show: mallory, want: "301|307|400|404"},
		{name: "agent: headers that are too long", path: "/healthz", headers: []string{"X: " + strings.Repeat("x", 40<<10)}, want: "431"},
	} {
		a.attack(t, test.name, func(t *testing.T) {
			if heard := a.page(t, &test, "127.0.0.1"); !heard.is(test.want) {
				t.Errorf("status %d, want %s", heard.code, test.want)
			}
		})
	}
	t.Run("agent: they say nothing", func(t *testing.T) { a.endure(t, crowd{Count: 1000}) })
}

// A gateway that speaks TLS speaks nothing older, and nothing else.
func TestGatewayOverTLS(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	c := newCastle(t, settings{secured: k})
	ports, err := proc.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := k.ca.Path("lookup/honest")
	process := launch{name: "gateway", program: leaseholdProgram(), args: []string{
		"gateway", "--managers", c.addr, "-n", namespace, "--key", "header:X-User", "--listen", ports[0], "--health-listen", "", "--tls-dir", dir,
		"--front-tls", "--front-cert", k.manager("tls.crt"), "--front-key", k.manager("tls.key"),
	}}.start(t)
	g := &castle{addr: ports[0], http: ports[0], process: process, honest: c.honest, secured: k, beside: true}
	eventually(t, "the gateway answers", func(ctx context.Context) error {
		conn, err := (&tls.Dialer{Config: k.showing(nil, "http/1.1")}).DialContext(ctx, "tcp", g.addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	for name, tune := range map[string]func(*tls.Config){
		"gateway: TLS 1.2": versions(tls.VersionTLS12, tls.VersionTLS12), "gateway: TLS 1.0 to 1.1": versions(tls.VersionTLS10, tls.VersionTLS11),
	} {
		g.attack(t, name, func(t *testing.T) {
			config := k.showing(nil, "http/1.1")
			tune(config)
			if got := shake(t, g.addr, config); got != "protocol version not supported" {
				t.Errorf("what comes of it: %s", got)
			}
		})
	}
	g.attack(t, "gateway: plain text", func(t *testing.T) {
		if got := hear(t, g.addr, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 400") {
			t.Errorf("what comes of it: %s", got)
		}
	})
	for _, test := range []pageCase{
		{name: "gateway: headers that are too long", path: "/", headers: []string{"X-User: alice", "X: " + strings.Repeat("x", 2<<20)}, want: "431"},
		{name: "gateway: two lengths", method: "POST", path: "/", headers: []string{"Content-Length: 1", "Content-Length: 2"}, want: "400"},
		{name: "gateway: no key", path: "/", want: "400"},
	} {
		g.attack(t, test.name, func(t *testing.T) {
			if heard := g.page(t, &test, "127.0.0.1"); !heard.is(test.want) {
				t.Errorf("status %d, want %s", heard.code, test.want)
			}
		})
	}
	t.Run("gateway: they say nothing", func(t *testing.T) { g.endure(t, crowd{Count: 1000}) })
}

// State goes from one owner to another, and nobody who has not been announced gets a word in.
func TestMover(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	c := newCastle(t, settings{secured: k})
	dir := k.trusts(t, "owner/other/mover")
	keeper, err := secure.Open(secure.Config{Cert: dir + "/tls.crt", Key: dir + "/tls.key", Roots: dir + "/ca.crt", Revoked: dir + "/crl.pem"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keeper.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o, err := owner.Join(soon(t), owner.Config{
		Namespace: other, Managers: []string{c.addr}, Addr: "127.0.0.1:1", Name: "mover", Credentials: keeper.Client(), Logger: quiet(),
		Mover: &owner.Mover{
			Export:   func(context.Context, *owner.Export) error { return nil },
			Import:   func(context.Context, *owner.Import) (func(leasehold.Lease), error) { return nil, nil },
			Listener: listener, Credentials: keeper.Client(), ServerCredentials: keeper.ServerWith(secure.Required),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close(context.Background()) }) // nobody has its state
	m := &castle{addr: listener.Addr().String(), process: c.process, honest: c.honest, secured: k, beside: true}
	m.refusesHandshakes(t, k, "owner", m.addr, "h2")
	m.attack(t, "owner: no certificate", func(t *testing.T) {
		if got := shake(t, m.addr, k.showing(nil, "h2")); got != "certificate required" {
			t.Errorf("what comes of it: %s", got)
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
		{"owner: an opening that is none", []string{header, "\xff\xff"}, nil, codes.InvalidArgument},
		{"owner: a ticket that nobody has announced", []string{header, opening(func(*leaseholdv1.TransferOpening) {})}, nil, codes.PermissionDenied},
		{"owner: another's session", []string{header, opening(func(o *leaseholdv1.TransferOpening) { o.Session = make([]byte, 16) })}, nil, codes.FailedPrecondition},
		{"owner: another namespace", []string{header, opening(func(o *leaseholdv1.TransferOpening) { o.Namespace = namespace })}, nil, codes.FailedPrecondition},
		{"owner: a bomb", []string{header, opening(func(*leaseholdv1.TransferOpening) {})}, []grpc.CallOption{grpc.UseCompressor(gzip.Name)}, codes.Unimplemented},
	} {
		m.attack(t, test.name, func(t *testing.T) {
			ctx := metadata.AppendToOutgoingContext(soon(t), test.header...)
			conn := m.as(t, k.certificate(t, "owner/other/mallory"), grpc.WithDefaultCallOptions(test.option...))
			if err := call(ctx, conn, transfer, &leaseholdv1.TransferRequest{}); status.Code(err) != test.want {
				t.Errorf("what comes of it: %v; want %v", err, test.want)
			}
		})
	}
}
