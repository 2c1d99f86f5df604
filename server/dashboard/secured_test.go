package dashboard_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/internal/testkit/logbook"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/dashboard"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// The tokens of the tests. The policy contains their hashes.
const (
	alice = "leasehold_alice-operates-pool"
	bob   = "leasehold_bob-looks-at-pool"
	carl  = "leasehold_carl-operates-other"
	dora  = "leasehold_dora-has-no-role"
)

const everybody = `
rules:
  - {identity: "spiffe://d/manager/m1", role: manager, namespaces: ["*"]}
  - {identity: "spiffe://d/operator/ann", role: operator, namespaces: ["*"]}
  - {identity: "spiffe://d/lookup/pool", role: lookup, namespaces: [pool]}
  - {identity: "spiffe://d/owner/pool/{name}", role: owner, namespaces: [pool]}
  - {identity: "token:alice", role: operator, namespaces: [pool]}
  - {identity: "token:bob", role: lookup, namespaces: [pool]}
  - {identity: "token:carl", role: operator, namespaces: [other]}
tokens:
  - {name: alice, sha256: ` + "ALICE" + `}
  - {name: bob, sha256: ` + "BOB" + `}
  - {name: carl, sha256: ` + "CARL" + `}
  - {name: dora, sha256: ` + "DORA" + `}
`

// A secured is a manager with certificates and a policy, and its dashboard over TLS.
type secured struct {
	t       *testing.T
	ca      *pki.Directory
	file    string // the policy
	policy  *access.Policy
	board   *dashboard.Dashboard
	url     string
	log     *logbook.Book
	revoked atomic.Bool // the certificate of lookups
}

func startSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{t: t, log: &logbook.Book{}, file: filepath.Join(t.TempDir(), "access.yaml")}
	var err error
	s.ca, _, err = pki.Create(filepath.Join(t.TempDir(), "pki"), "d", []pki.Party{
		{Role: pki.Manager, Name: "m1", Hosts: []string{"127.0.0.1", "localhost"}},
		{Role: pki.Operator, Name: "ann"},
		{Role: pki.Lookup, Namespace: pool},
		{Role: pki.Owner, Namespace: pool, Name: "a"},
	}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s.write(everybody)
	log := slog.New(slog.NewTextHandler(s.log, nil))
	keeper := s.keeper("manager/m1")
	if s.policy, err = access.Open(access.Config{File: s.file, Logger: log, Revoked: s.isRevoked}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.policy.Close)
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	m, err := manager.Start(manager.Config{
		Store: mem.NewDisk().Open(), StoreName: "in memory", Listener: listen(), TTL: time.Second, Logger: quietLog(), Build: "test",
		ServerCredentials: keeper.Server(), ClientCredentials: keeper.Client(), Access: s.policy,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = m.Close(ctx) // there is no standby
	})
	s.create(m, pool)
	s.create(m, "other")
	s.serve(m, listen(), keeper, log)
	return s
}

// create creates a namespace.
func (s *secured) create(m *manager.Manager, name string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(access.WithCaller(s.t.Context(), access.Known("spiffe://d/operator/ann")), browserPatience)
	defer cancel()
	config := short()
	config.Name = name
	for {
		_, err := m.Admin().CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config})
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatal(err)
		case <-time.After(20 * time.Millisecond): // there is no leader yet
		}
	}
}

func (s *secured) serve(m *manager.Manager, at net.Listener, keeper *secure.Keeper, log *slog.Logger) {
	s.t.Helper()
	var err error
	if s.board, err = dashboard.New(dashboard.Config{Admin: m.Admin(), Access: s.policy, Logger: log, MaxViewers: 8}); err != nil {
		s.t.Fatal(err)
	}
	server := &http.Server{
		Handler: s.board, TLSConfig: keeper.ServerTLS(secure.IfGiven), ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
	}
	s.url = "https://" + at.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() { _ = connlimit.Serve(server, at, connlimit.Config{}) }) // until it is closed
	s.t.Cleanup(func() {
		s.board.Close()
		_ = server.Close()
		serving.Wait()
	})
}

func (s *secured) isRevoked(cert *x509.Certificate) bool {
	return s.revoked.Load() && len(cert.URIs) > 0 && cert.URIs[0].String() == "spiffe://d/lookup/pool"
}

// write writes the policy.
func (s *secured) write(text string) {
	s.t.Helper()
	for name, token := range map[string]string{"ALICE": alice, "BOB": bob, "CARL": carl, "DORA": dora} {
		sum := sha256.Sum256([]byte(token))
		text = strings.ReplaceAll(text, name, hex.EncodeToString(sum[:]))
	}
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// change activates another policy.
func (s *secured) change(text string) {
	s.t.Helper()
	s.write(text)
	if err := s.policy.Reload(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *secured) keeper(dir string) *secure.Keeper {
	s.t.Helper()
	cfg := secure.Config{Roots: s.ca.Path("ca.crt")}
	if dir != "" {
		cfg.Cert, cfg.Key = s.ca.Path(filepath.Join(dir, "tls.crt")), s.ca.Path(filepath.Join(dir, "tls.key"))
	}
	k, err := secure.Open(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(k.Close)
	return k
}

// A person is a visitor with a browser.
type person struct {
	t      *testing.T
	url    string
	client *http.Client
	csrf   string
	header map[string]string
}

// person returns a visitor with the certificate of a directory, or without one.
func (s *secured) person(dir string) *person {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	transport := &http.Transport{DialTLSContext: s.keeper(dir).DialTLS}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &person{t: s.t, url: s.url, client: &http.Client{Jar: jar, Transport: transport}, header: make(map[string]string)}
}

// loggedIn returns a visitor with a session.
func (s *secured) loggedIn(token string) *person {
	s.t.Helper()
	p := s.person("")
	if code, text := p.login(token); code != http.StatusOK {
		s.t.Fatalf("%d, %s", code, text)
	}
	return p
}

func (p *person) send(method, path, body string) *http.Response {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), browserPatience)
	p.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if p.csrf != "" {
		r.Header.Set("X-Leasehold-Csrf", p.csrf)
	}
	for name, value := range p.header {
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// do sends a request, and returns the status and the start of the response: the first bytes of a
// stream.
func (p *person) do(method, path, body string) (int, string) {
	p.t.Helper()
	answer := p.send(method, path, body)
	defer answer.Body.Close() //nolint:errcheck // read-only
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		line, err := bufio.NewReader(answer.Body).ReadString('\n')
		if err != nil {
			p.t.Fatal(err)
		}
		return answer.StatusCode, line
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// A sessionInfo is the dashboard's description of a visitor.
type sessionInfo struct {
	Possible, Required, LoggedIn, Admin bool
	Who, CSRF                           string
}

func (p *person) session(namespace string) (out sessionInfo) {
	p.t.Helper()
	code, text := p.do(http.MethodGet, "/api/session?namespace="+namespace, "")
	if err := json.Unmarshal([]byte(text), &out); err != nil || code != http.StatusOK {
		p.t.Fatalf("%d, %s: %v", code, text, err)
	}
	return out
}

func (p *person) login(token string) (int, string) {
	p.t.Helper()
	body, err := json.Marshal(map[string]string{"token": token})
	if err != nil {
		p.t.Fatal(err)
	}
	code, text := p.do(http.MethodPost, "/api/login", string(body))
	var out sessionInfo
	if json.Unmarshal([]byte(text), &out) == nil {
		p.csrf = out.CSRF
	}
	return code, text
}
