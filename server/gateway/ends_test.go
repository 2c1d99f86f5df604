package gateway

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/daemon"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/secure"
)

// endsUnderTest is a CA with a gateway, servers, and a server with a wrong identity.
func endsUnderTest(t *testing.T) (ca *pki.Directory, keeper func(dir string) *secure.Keeper) {
	t.Helper()
	ca, _, err := pki.Create(filepath.Join(t.TempDir(), "pki"), "d", []pki.Party{
		{Role: pki.Owner, Namespace: "gateways", Name: "g", Hosts: []string{"127.0.0.1"}},
		{Role: pki.Owner, Namespace: "pool", Name: "a", Hosts: []string{"127.0.0.1"}},
		{Role: pki.Owner, Namespace: "pool", Name: "elsewhere", Hosts: []string{"192.0.2.1"}},
	}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return ca, func(dir string) *secure.Keeper {
		k, err := secure.Open(secure.Config{Cert: ca.Path(dir + "/tls.crt"), Key: ca.Path(dir + "/tls.key"), Roots: ca.Path("ca.crt")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(k.Close)
		return k
	}
}

// Callers use TLS, with the gateway's certificate or --front-cert, and need no client
// certificate.
func TestFrontOverTLS(t *testing.T) {
	ca, keeper := endsUnderTest(t)
	for name, ends := range map[string]gatewayEnds{
		"own":     {frontTLS: true},
		"another": {frontTLS: true, frontCert: ca.Path("owner/pool/a/tls.crt"), frontKey: ca.Path("owner/pool/a/tls.key")},
	} {
		t.Run(name, func(t *testing.T) {
			log := slog.New(slog.DiscardHandler)
			over, done, err := ends.front(keeper("owner/gateways/g"), &cli.Security{Ca: ca.Path("ca.crt")}, log)
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			at, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			f := startFront(at, over, log)
			defer f.stop(0)
			want := secure.Identity("spiffe://d/owner/gateways/g")
			if name == "another" {
				want = "spiffe://d/owner/pool/a"
			}
			caller, err := secure.Open(secure.Config{Roots: ca.Path("ca.crt"), Servers: []secure.Identity{want}})
			if err != nil {
				t.Fatal(err)
			}
			defer caller.Close()
			answer, err := get(t, &http.Transport{DialTLSContext: caller.DialTLS, DisableKeepAlives: true}, "https://"+at.Addr().String())
			if err != nil || answer != http.StatusServiceUnavailable { // there is no table yet
				t.Errorf("over TLS: %d, %v", answer, err)
			}
			answer, err = get(t, &http.Transport{DisableKeepAlives: true}, "http://"+at.Addr().String())
			if err == nil && answer != http.StatusBadRequest {
				t.Errorf("in plain text: %d", answer)
			}
		})
	}
}

// With --health-tls, health and metrics use TLS, and reject plaintext.
func TestProbesOverTLS(t *testing.T) {
	ca, keeper := endsUnderTest(t)
	log := slog.New(slog.DiscardHandler)
	caller, err := secure.Open(secure.Config{Roots: ca.Path("ca.crt")})
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	for _, secured := range []bool{false, true} {
		ends := gatewayEnds{frontTLS: true, healthTLS: secured}
		over, done, err := ends.front(keeper("owner/gateways/g"), &cli.Security{Ca: ca.Path("ca.crt")}, log)
		if err != nil {
			t.Fatal(err)
		}
		defer done() //nolint:gocritic // there are two
		at, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		probes := daemon.ServeHealth(at, ends.probes(over), http.NotFoundHandler(), log)
		probes.Ask(&Health{})
		via := &http.Transport{DialTLSContext: caller.DialTLS, DisableKeepAlives: true}
		plain, plainErr := get(t, via, "http://"+at.Addr().String()+"/healthz")
		encrypted, err := get(t, via, "https://"+at.Addr().String()+"/healthz")
		if (plainErr == nil && plain == http.StatusOK) == secured || (err == nil && encrypted == http.StatusOK) != secured {
			t.Errorf("--health-tls=%t: in plain text %d, %v; over TLS %d, %v", secured, plain, plainErr, encrypted, err)
		}
		probes.Stop()
	}
}

func get(t *testing.T, via http.RoundTripper, url string) (int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := via.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close() //nolint:errcheck // it is not read
	return answer.StatusCode, nil
}

// A server's certificate must match its address, or a configured identity.
func TestBackOverTLS(t *testing.T) {
	_, keeper := endsUnderTest(t)
	for name, test := range map[string]struct {
		server string
		ends   gatewayEnds
		want   bool
	}{
		"its address":                   {"owner/pool/a", gatewayEnds{backTLS: true}, true},
		"another's address":             {"owner/pool/elsewhere", gatewayEnds{backTLS: true}, false},
		"its identity":                  {"owner/pool/elsewhere", gatewayEnds{backTLS: true, backIdentities: []string{"spiffe://d/owner/pool/{name}"}}, true},
		"another identity":              {"owner/pool/a", gatewayEnds{backTLS: true, backIdentities: []string{"spiffe://d/owner/other/{name}"}}, false},
		"a gateway that plays a server": {"owner/gateways/g", gatewayEnds{backTLS: true, backIdentities: []string{"spiffe://d/owner/pool/{name}"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var caller secure.Identity
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				caller = secure.Identities(r.TLS.PeerCertificates[0])[0]
			}))
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
			server.TLS = keeper(test.server).ServerTLS(secure.Required)
			server.StartTLS()
			defer server.Close()
			conn, err := test.ends.dial(keeper("owner/gateways/g"))(t.Context(), "tcp", server.Listener.Addr().String())
			if (err == nil) != test.want {
				t.Fatalf("%v, want it reached: %v", err, test.want)
			}
			if err != nil {
				return
			}
			defer conn.Close() //nolint:errcheck // it is over
			if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 200") || caller != "spiffe://d/owner/gateways/g" {
				t.Errorf("%.40s, %v, from %s", text, err, caller)
			}
		})
	}
}

// The log reports once that a server uses plaintext or has a wrong identity, despite retries, and
// does not report a server that is down.
func TestBackThatIsDistrusted(t *testing.T) {
	_, keeper := endsUnderTest(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	var log bytes.Buffer
	ends := gatewayEnds{backTLS: true}
	dial := logTLSFailures(ends.dial(keeper("owner/gateways/g")), slog.New(slog.NewTextHandler(&log, nil)))
	for _, addr := range []string{gone.Listener.Addr().String(), server.Listener.Addr().String(), server.Listener.Addr().String()} {
		if _, err := dial(t.Context(), "tcp", addr); err == nil {
			t.Error("it was reached over TLS")
		}
	}
	if said := log.String(); strings.Count(said, "TLS handshake with a server failed") != 1 || !strings.Contains(said, "server="+server.Listener.Addr().String()) {
		t.Error(said)
	}
	if logTLSFailures(nil, nil) != nil {
		t.Error("it dials in plain text")
	}
}

func TestGatewayEndsFit(t *testing.T) {
	for want, g := range map[string]Settings{
		"set together":                      {ends: gatewayEnds{frontTLS: true, frontCert: "x"}},
		"--front-cert requires --front-tls": {ends: gatewayEnds{frontCert: "x", frontKey: "y"}},
		"requires --front-tls":              {ends: gatewayEnds{healthTLS: true}},
		"requires --back-tls":               {ends: gatewayEnds{backIdentities: []string{"spiffe://d/a"}}},
		"require --tls-dir":                 {ends: gatewayEnds{backTLS: true}},
		"is for managers":                   {ends: gatewayEnds{backTLS: true}, Settings: daemon.Settings{Security: cli.Security{Dir: "x", Servers: []string{"spiffe://d/m"}}}},
		"--back-identities: ":               {ends: gatewayEnds{backTLS: true, backIdentities: []string{"no identity"}}},
	} {
		g.Flags = pflag.NewFlagSet("gateway", pflag.ContinueOnError)
		if err := g.validateEnds(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// No plaintext is sent to a server on another computer without --insecure.
func TestBackInPlainText(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	var g Settings
	conn, err := g.dialPlainly()(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close() // no data was sent
	// No packet is sent: the dialer rejects the address.
	if _, err := g.dialPlainly()(t.Context(), "tcp", "192.0.2.1:80"); err == nil || !strings.Contains(err.Error(), "and plaintext is not allowed: start the gateway with --back-tls, or with --insecure") {
		t.Errorf("a server elsewhere: %v", err)
	}
	g.Security.Insecure = true
	within, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.dialPlainly()(within, "tcp", "192.0.2.1:80"); err == nil || strings.Contains(err.Error(), "plaintext") {
		t.Errorf("a server elsewhere, in a network that can be trusted: %v", err)
	}
}
