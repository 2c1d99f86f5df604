package httpauth_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/access"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/httpauth"
)

const (
	reader   = "leasehold_reads-pool-0123456789"
	roleless = "leasehold_has-no-role-0123456789"
)

// newPolicy returns a policy with a reader, an owner, and a token without a role.
func newPolicy(t *testing.T, log *slog.Logger) *access.Policy {
	t.Helper()
	hash := func(token string) string {
		sum := sha256.Sum256([]byte(token))
		return hex.EncodeToString(sum[:])
	}
	file := filepath.Join(t.TempDir(), "access.yaml")
	text := `
rules:
  - {identity: "token:reader", role: lookup, namespaces: [pool]}
  - {identity: "spiffe://d/lookup/pool", role: lookup, namespaces: [pool]}
  - {identity: "spiffe://d/owner/pool/{name}", role: owner, namespaces: [pool]}
tokens:
  - {name: reader, sha256: ` + hash(reader) + `}
  - {name: roleless, sha256: ` + hash(roleless) + `}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := access.Open(access.Config{File: file, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// shown returns the state of a connection with a client certificate.
func shown(t *testing.T, id string) *tls.ConnectionState {
	t.Helper()
	if id == "" {
		return &tls.ConnectionState{}
	}
	u, err := url.Parse(id)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(1), URIs: []*url.URL{u}}
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}
}

func TestGuard(t *testing.T) {
	var written bytes.Buffer
	log := slog.New(slog.NewTextHandler(&written, nil))
	policy := newPolicy(t, log)
	const far, near = "192.0.2.1:5", "127.0.0.1:5"
	for name, test := range map[string]struct {
		state  *tls.ConnectionState // nil: plain text
		header []string
		from   string
		want   int
	}{
		"a reader's token":         {shown(t, ""), []string{"Bearer " + reader}, far, 200},
		"in other letters":         {shown(t, ""), []string{"bearer  " + reader + " "}, far, 200},
		"a reader's certificate":   {shown(t, "spiffe://d/lookup/pool"), nil, far, 200},
		"nothing":                  {shown(t, ""), nil, far, 401},
		"a stranger's certificate": {shown(t, "spiffe://d/stranger"), nil, far, 403},
		"an owner's certificate":   {shown(t, "spiffe://d/owner/pool/a"), nil, far, 403},
		"an unknown token":         {shown(t, ""), []string{"Bearer " + strings.Repeat("x", 40)}, far, 401},
		"a token without a role":   {shown(t, ""), []string{"Bearer " + roleless}, far, 403},
		"a reader with bad token":  {shown(t, "spiffe://d/lookup/pool"), []string{"Bearer wrong"}, far, 401},
		"a password":               {shown(t, ""), []string{"Basic YTpi"}, far, 401},
		"two tokens":               {shown(t, ""), []string{"Bearer " + reader, "Bearer " + reader}, far, 401},
		"an empty one":             {shown(t, ""), []string{""}, far, 401},
		"plain text from afar":     {nil, []string{"Bearer " + reader}, far, 401},
		"plain text here":          {nil, []string{"Bearer " + reader}, near, 200},
		"by a socket":              {nil, []string{"Bearer " + reader}, "@", 200},
		"nothing in plain text":    {nil, nil, near, 401},
	} {
		desk := httpauth.New(policy, log)
		guarded := desk.Guard(leaseholdv1.AdminService_GetStatus_FullMethodName, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c, ok := access.CallerFrom(r.Context()); !ok || len(c.Identities()) != 1 {
				t.Errorf("%s: the request has no caller", name)
			}
		}))
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.TLS, r.RemoteAddr, r.Header["Authorization"] = test.state, test.from, test.header
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%s: %d, want %d: %s", name, w.Code, test.want, w.Body)
		}
		if (w.Header().Get("WWW-Authenticate") != "") != (test.want == 401) {
			t.Errorf("%s: the challenge is %q", name, w.Header().Get("WWW-Authenticate"))
		}
		if strings.Contains(w.Body.String()+written.String(), reader) {
			t.Errorf("%s: the token is in the response or the log", name)
		}
	}
	if !strings.Contains(written.String(), "192.0.2.1") || !strings.Contains(written.String(), "spiffe://d/stranger") {
		t.Errorf("rejections are not logged: %s", written.String())
	}
}

// TestGuardIsThrottled: attempts with wrong tokens are rate limited, and so are their log lines.
func TestGuardIsThrottled(t *testing.T) {
	var written bytes.Buffer
	desk := httpauth.New(newPolicy(t, slog.New(slog.DiscardHandler)), slog.New(slog.NewTextHandler(&written, nil)))
	guarded := desk.Guard(leaseholdv1.AdminService_GetStatus_FullMethodName, http.NotFoundHandler())
	codes := make(map[int]int)
	for range 1000 {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.TLS = &tls.ConnectionState{}
		r.Header.Set("Authorization", "Bearer "+strings.Repeat("x", 40))
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, r)
		codes[w.Code]++
	}
	if codes[401] > 10 || codes[429] < 900 || len(codes) != 2 {
		t.Errorf("%v", codes)
	}
	if lines := strings.Count(written.String(), "\n"); lines > 40 {
		t.Errorf("%d log lines for one address", lines)
	}
}
