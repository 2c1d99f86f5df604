package agent

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/internal/testkit/logbook"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/secure"
)

const finder = "leasehold_finds-in-test-0123456789"

const programs = `
rules:
  - {identity: "spiffe://d/owner/test/{name}", role: owner, namespaces: [test]}
  - {identity: "spiffe://d/owner/other/{name}", role: owner, namespaces: [other]}
  - {identity: "spiffe://d/lookup/test", role: lookup, namespaces: [test]}
  - {identity: "spiffe://d/lookup/other", role: lookup, namespaces: [other]}
  - {identity: "token:finder", role: lookup, namespaces: [test]}
tokens:
  - {name: finder, sha256: HASH}
`

// A guarded is an agent with certificates and a policy.
type guarded struct {
	t       *testing.T
	c       *leaseholdtest.Cluster
	ca      *pki.Directory
	file    string
	policy  *access.Policy
	log     *logbook.Book
	revoked atomic.Bool // the certificate of the owner a
}

func startGuarded(t *testing.T, c *leaseholdtest.Cluster) *guarded {
	t.Helper()
	g := &guarded{t: t, c: c, log: &logbook.Book{}, file: filepath.Join(t.TempDir(), "access.yaml")}
	var err error
	g.ca, _, err = pki.Create(filepath.Join(t.TempDir(), "pki"), "d", []pki.Party{
		{Role: pki.Owner, Namespace: "test", Name: "agent", Hosts: []string{"a"}},
		{Role: pki.Owner, Namespace: "test", Name: "a"},
		{Role: pki.Owner, Namespace: "test", Name: "b"},
		{Role: pki.Owner, Namespace: "other", Name: "a"},
		{Role: pki.Lookup, Namespace: "test"},
		{Role: pki.Lookup, Namespace: "other"},
	}, time.Now(), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	g.write(programs)
	log := slog.New(slog.NewTextHandler(g.log, nil))
	revoked := func(cert *x509.Certificate) bool {
		return g.revoked.Load() && len(cert.URIs) > 0 && cert.URIs[0].String() == "spiffe://d/owner/test/a"
	}
	if g.policy, err = access.Open(access.Config{File: g.file, Logger: log, Revoked: revoked}); err != nil {
		t.Fatal(err)
	}
	keeper := g.keeper("owner/test/agent")
	c.Node("a").Cleanup(func(context.Context) { g.policy.Close() }) // runs after the agent has stopped
	startAgent(t, c, "a", func(cfg *Config) {
		cfg.Access, cfg.TLS, cfg.Logger = g.policy, keeper.ServerTLS(secure.IfGiven), log
		cfg.Scrape = http.NotFoundHandler()
	})
	return g
}

func (g *guarded) write(text string) {
	g.t.Helper()
	sum := sha256.Sum256([]byte(finder))
	if err := os.WriteFile(g.file, []byte(strings.ReplaceAll(text, "HASH", hex.EncodeToString(sum[:]))), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func (g *guarded) keeper(dir string) *secure.Keeper {
	g.t.Helper()
	cfg := secure.Config{Roots: g.ca.Path("ca.crt")}
	if dir != "" {
		cfg.Cert, cfg.Key = g.ca.Path(dir+"/tls.crt"), g.ca.Path(dir+"/tls.key")
	}
	k, err := secure.Open(cfg)
	if err != nil {
		g.t.Fatal(err)
	}
	k.Close() // the files do not change here, and the test must end without goroutines
	return k
}

// program returns a program that uses a client certificate, a token, or neither.
func (g *guarded) program(dir, token string) *program {
	g.t.Helper()
	n, k := g.c.Node("a"), g.keeper(dir)
	transport := &http.Transport{DisableKeepAlives: true, DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := n.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		cfg := k.ClientTLS()
		cfg.ServerName, cfg.NextProtos = "a", []string{"http/1.1"}
		return tls.Client(conn, cfg), nil
	}}
	return &program{
		t: g.t, node: n, base: fmt.Sprintf("https://a:%d", agentPort),
		http: &http.Client{Transport: bearing{transport, token}, Timeout: time.Minute},
	}
}

// bearing adds a bearer token to each request.
type bearing struct {
	http.RoundTripper
	token string
}

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.RoundTripper.RoundTrip(r)
}

func TestAccessPolicyOfPrograms(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		g := startGuarded(t, c)
		a := g.program("owner/test/a", "")
		a.join(c, object{"name": "a"})
		who := map[string]*program{
			"a": a, "b": g.program("owner/test/b", ""), "other": g.program("owner/other/a", ""), "lookup": g.program("lookup/test", ""),
			"token": g.program("", finder), "wrong token": g.program("", finder+"x"), "nobody": g.program("", ""),
		}
		joinAs := func(ns, name string) object {
			return object{"namespace": ns, "addr": "a:8080", "name": name, "timeout_ms": 200}
		}
		for _, test := range []struct {
			who, method, path string
			body              any
			want              int
		}{
			{"nobody", "GET", "/healthz", nil, 200},
			{"nobody", "GET", "/v1/status", nil, 401},
			{"nobody", "POST", "/v1/owners", joinAs("test", "b"), 401},
			{"nobody", "POST", a.path("/leases"), object{}, 401},
			{"nobody", "GET", "/metrics", nil, 401},
			{"wrong token", "GET", "/v1/namespaces/test/find?name=x", nil, 401},
			{"a", "POST", a.path("/leases"), object{}, 200},
			{"a", "POST", "/v1/owners", joinAs("test", "b"), 403}, // the name of another owner
			{"a", "POST", "/v1/owners", joinAs("test", ""), 403},  // the default name is the address, which the rule does not allow
			{"a", "POST", "/v1/owners", joinAs("other", "a"), 403},
			{"a", "GET", "/v1/namespaces/test/find?name=x", nil, 403}, // an owner without the lookup role
			{"a", "GET", "/v1/status", nil, 403},
			{"b", "POST", a.path("/leases"), object{}, 403}, // the session id of another owner
			{"b", "POST", a.path("/check"), object{"name": "x"}, 403},
			{"b", "DELETE", a.path(""), nil, 403},
			{"b", "GET", a.path("/events"), nil, 403},
			{"other", "POST", a.path("/leases"), object{}, 403},
			{"other", "POST", "/v1/owners", joinAs("test", "a"), 403},
			{"lookup", "POST", "/v1/owners", joinAs("test", "a"), 403},
			{"lookup", "GET", "/v1/namespaces/test/find?name=x&refresh=true", nil, 200},
			{"lookup", "GET", "/v1/namespaces/other/find?name=x", nil, 403},
			{"lookup", "GET", "/v1/namespaces/other/losses", nil, 403},
			{"lookup", "GET", "/v1/status", nil, 200},
			{"token", "GET", "/v1/namespaces/test/find?name=x", nil, 200},
			{"token", "POST", "/v1/owners", joinAs("test", "a"), 403},
			{"token", "GET", "/v1/status", nil, 200},
		} {
			p := *who[test.who]
			if got, err := p.call(test.method, test.path, test.body, &map[string]any{}); got != test.want {
				t.Errorf("%s: %s %s %v: %d, want %d: %v", test.who, test.method, test.path, test.body, got, test.want, err)
			}
		}
		for dir, want := range map[string]int{"lookup/test": 1, "lookup/other": 0} {
			var status statusDocument
			g.program(dir, "").must("GET", "/v1/status", nil, &status)
			if len(status.Owners) != want || len(status.Lookups) != want {
				t.Errorf("status for %s: %+v", dir, status)
			}
		}
		if strings.Contains(g.log.String(), finder) || strings.Contains(g.log.String(), a.id) {
			t.Error("the log contains a secret")
		}
		for _, want := range []string{`caller="spiffe://d/owner/test/a, dns:a"`, "msg=refused"} {
			if !strings.Contains(g.log.String(), want) {
				t.Errorf("the log does not contain %s:\n%s", want, g.log)
			}
		}
	})
}

// TestRevokedProgramLosesItsLeases: the leases and streams of a program end when its permission is
// revoked.
func TestRevokedProgramLosesItsLeases(t *testing.T) {
	for name, take := range map[string]func(*guarded){
		"the rule is removed": func(g *guarded) {
			g.write(strings.Replace(programs, `"spiffe://d/owner/test/{name}", role: owner, namespaces: [test]`, `"spiffe://d/owner/test/b", role: owner, namespaces: [test], names: [b]`, 1))
			if err := g.policy.Reload(); err != nil {
				g.t.Fatal(err)
			}
		},
		"the certificate is revoked": func(g *guarded) { g.revoked.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				g := startGuarded(t, c)
				a := g.program("owner/test/a", "")
				a.join(c, object{"name": "a"})
				lines := a.lines(t.Context(), a.path("/events"))
				var awaited awaitAnswer
				if a.must("POST", a.path("/await"), object{"name": "alice", "timeout_ms": 5000}, &awaited); !awaited.Held {
					t.Fatal("the program owns no keys")
				}
				take(g)
				c.Advance(5 * time.Second) // the policy check, the promise, and a round trip
				if node, ok := c.Owner(0); ok {
					t.Errorf("%s still owns keys", node)
				}
				var last map[string]any
				for line := range lines {
					last = line
				}
				if why, _ := last["why"].(string); last["type"] != "closed" || !strings.Contains(why, "may no longer") {
					t.Errorf("last event of the stream: %v", last)
				}
				if status, err := a.call("POST", a.path("/leases"), object{}, new(leasesAnswer)); status != 404 && status != 401 {
					t.Errorf("request after the revocation: %d, %v", status, err)
				}
			})
		})
	}
}

func TestTLSNeedsAPolicy(t *testing.T) {
	if _, err := New(Config{Managers: []string{"127.0.0.1:7400"}, TLS: &tls.Config{MinVersion: tls.VersionTLS13}}); err == nil {
		t.Error("TLS is accepted without an access policy")
	}
}
