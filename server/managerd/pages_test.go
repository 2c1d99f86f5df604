package managerd

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/server/daemon"

	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/secure"
)

// pagesUnderTest serves health and metrics like a manager, over TLS and with an access policy.
func pagesUnderTest(t *testing.T) (addr, token string, keeper func(dir string) *secure.Keeper) {
	t.Helper()
	parties := []pki.Party{
		{Role: pki.Manager, Name: "m1", Hosts: []string{"127.0.0.1", "localhost"}},
		{Role: pki.Lookup, Namespace: "pool"},
		{Role: pki.Owner, Namespace: "pool", Name: "a"},
	}
	ca, _, err := pki.Create(filepath.Join(t.TempDir(), "pki"), "d", parties, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	token, hash := pki.NewToken()
	file := ca.Path("access.yaml")
	text := strings.Replace(pki.Policy("d", parties), "rules:\n", "rules:\n  - {identity: \"token:prometheus\", role: lookup, namespaces: [pool]}\n", 1) +
		"\ntokens:\n  - {name: prometheus, sha256: " + hash + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	keeper = func(dir string) *secure.Keeper {
		cfg := secure.Config{Roots: ca.Path("ca.crt")}
		if dir != "" {
			cfg.Cert, cfg.Key = ca.Path(dir+"/tls.crt"), ca.Path(dir+"/tls.key")
		}
		k, err := secure.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(k.Close)
		return k
	}
	log := slog.New(slog.DiscardHandler)
	p := &protection{keeper: keeper("manager/m1")}
	if p.policy, err = access.Open(access.Config{File: file, Logger: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.policy.Close)
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })
	probes := daemon.ServeHealth(at, p.pages(), p.metrics(metrics, log), log)
	t.Cleanup(probes.Stop)
	return at.Addr().String(), token, keeper
}

// Health needs no authentication; metrics need the permission to read some namespace.
func TestPagesOverTLS(t *testing.T) {
	addr, token, keeper := pagesUnderTest(t)
	for name, test := range map[string]struct {
		path   string
		dir    string
		header http.Header
		want   int
	}{
		"health without authentication":    {path: "/healthz", want: 200},
		"readiness without authentication": {path: "/readyz", want: 503}, // the store is not open yet
		"metrics without authentication":   {path: "/metrics", want: 401},
		"metrics by certificate":           {path: "/metrics", dir: "lookup/pool", want: 200},
		"metrics by token":                 {path: "/metrics", header: http.Header{"Authorization": {"Bearer " + token}}, want: 200},
		"metrics for an owner":             {path: "/metrics", dir: "owner/pool/a", want: 403},
		"metrics with a wrong token":       {path: "/metrics", header: http.Header{"Authorization": {"Bearer " + token + "x"}}, want: 401},
		"a header without end":             {path: "/healthz", header: http.Header{"X-Long": {strings.Repeat("x", 40<<10)}}, want: 431},
	} {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{DialTLSContext: keeper(test.dir).DialTLS, DisableKeepAlives: true}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+addr+test.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if test.header != nil {
				r.Header = test.header
			}
			answer, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close() //nolint:errcheck // it is not read
			if answer.StatusCode != test.want {
				t.Errorf("%s, want %d", answer.Status, test.want)
			}
		})
	}
}

// TestPagesRequireTLS13: plaintext and older TLS versions are rejected.
func TestPagesRequireTLS13(t *testing.T) {
	addr, token, keeper := pagesUnderTest(t)
	plain, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	plain.Header.Set("Authorization", "Bearer "+token)
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(plain)
	if err == nil {
		defer answer.Body.Close() //nolint:errcheck // it is not read
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("response to plaintext: %s", answer.Status)
		}
	}
	old := keeper("").ClientTLS()
	old.ServerName, old.MinVersion, old.MaxVersion = "localhost", tls.VersionTLS12, tls.VersionTLS12
	if conn, err := tls.Dial("tcp", addr, old); err == nil {
		_ = conn.Close() // it should have been rejected
		t.Error("TLS 1.2 is accepted")
	}
}

func TestAdminTokenIsForPlainText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("0123456789abcdef0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := managerFrom(t, "--tls-dir=pki", "--access=access.yaml", "--admin-token-file="+file)
	if err == nil || !strings.Contains(err.Error(), "with TLS, log in with a token of the --access file") {
		t.Errorf("%v", err)
	}
}

// TestSlowClientsTimeOut: a client that does not send its announced body times out, and so does
// one that does not read the response.
func TestSlowClientsTimeOut(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("manager")
		probes := daemon.ServeHealth(n.Listen(7401), nil, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
		n.Cleanup(func(context.Context) { probes.Stop() })
		probes.Ask(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}))
		for name, request := range map[string]string{
			"a body that does not come":   "POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
			"a response that is not read": "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"a header that does not end":  "GET / HTTP/1.1\r\nHost: localhost\r\nX-",
			"a slow request":              "G",
		} {
			conn, err := c.Node("caller").DialContext(t.Context(), "tcp", "manager:7401")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			c.Advance(11 * time.Second)
			if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: the connection is still open", name)
			}
			_ = conn.Close() // in any state
		}
	})
}
