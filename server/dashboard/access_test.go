package dashboard_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

const (
	stream      = "/api/stream?namespace=pool"
	otherStream = "/api/stream?namespace=other"
	explain     = "/api/explain?namespace=pool&key=x"
	drainPool   = `{"namespace":"pool","owner":"nosuch"}`
	drainOther  = `{"namespace":"other","owner":"nosuch"}`
	movePool    = `{"namespace":"pool","owner":"nosuch","start":"0000000000000000","limit":"8000000000000000"}`
)

// TestPermissions checks requests with certificates and tokens. An order that passes the check
// fails with 404, because there is no such owner.
func TestPermissions(t *testing.T) {
	s := startSecured(t)
	anonymous := s.person("")
	ann, lookups, owner := s.person("operator/ann"), s.person("lookup/pool"), s.person("owner/pool/a")
	for _, p := range []*person{ann, lookups, owner} {
		p.csrf = p.session(pool).CSRF
	}
	people := map[string]*person{
		"anonymous": anonymous, "operator's certificate": ann, "lookup's certificate": lookups, "owner's certificate": owner,
		"alice": s.loggedIn(alice), "bob": s.loggedIn(bob), "carl": s.loggedIn(carl), "dora": s.loggedIn(dora),
	}
	for request, want := range map[string]map[string]int{
		"GET /":                            {"anonymous": 200, "operator's certificate": 200, "lookup's certificate": 200, "owner's certificate": 200, "alice": 200, "bob": 200, "carl": 200, "dora": 200},
		"GET " + stream:                    {"anonymous": 401, "operator's certificate": 200, "lookup's certificate": 200, "owner's certificate": 403, "alice": 200, "bob": 200, "carl": 403, "dora": 403},
		"GET " + otherStream:               {"anonymous": 401, "operator's certificate": 200, "lookup's certificate": 403, "owner's certificate": 403, "alice": 403, "bob": 403, "carl": 200, "dora": 403},
		"GET /api/stream":                  {"anonymous": 401, "operator's certificate": 200, "lookup's certificate": 200, "owner's certificate": 403, "alice": 200, "bob": 200, "carl": 200, "dora": 403},
		"GET " + explain:                   {"anonymous": 401, "operator's certificate": 200, "lookup's certificate": 200, "owner's certificate": 403, "alice": 200, "bob": 200, "carl": 403, "dora": 403},
		"POST /api/drain " + drainPool:     {"anonymous": 401, "operator's certificate": 404, "lookup's certificate": 403, "owner's certificate": 403, "alice": 404, "bob": 403, "carl": 403, "dora": 403},
		"POST /api/drain " + drainOther:    {"anonymous": 401, "operator's certificate": 404, "lookup's certificate": 403, "owner's certificate": 403, "alice": 403, "bob": 403, "carl": 404, "dora": 403},
		"POST /api/move " + movePool:       {"anonymous": 401, "operator's certificate": 404, "lookup's certificate": 403, "owner's certificate": 403, "alice": 404, "bob": 403, "carl": 403, "dora": 403},
		"GET /api/stream?namespace=secret": {"anonymous": 401, "operator's certificate": 200, "lookup's certificate": 403, "owner's certificate": 403, "alice": 403, "bob": 403, "carl": 403, "dora": 403},
	} {
		method, rest, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(rest, " ")
		for name, code := range want {
			if got, text := people[name].do(method, path, body); got != code {
				t.Errorf("%s: %s: %d, want %d: %s", request, name, got, code, text)
			}
		}
	}
}

// TestSessionDescribesPermissions: the session document has the visitor's name and permissions in
// a namespace.
func TestSessionDescribesPermissions(t *testing.T) {
	s := startSecured(t)
	if got := s.person("").session(pool); !got.Possible || !got.Required || got.Who != "" || got.CSRF != "" || got.Admin {
		t.Errorf("anonymous visitor: %+v", got)
	}
	if got := s.person("operator/ann").session("other"); got.Who != "spiffe://d/operator/ann" || got.LoggedIn || !got.Admin || got.CSRF == "" {
		t.Errorf("ann is %+v", got)
	}
	a := s.loggedIn(alice)
	if got := a.session(pool); got.Who != "token:alice" || !got.LoggedIn || !got.Admin || got.CSRF != a.csrf {
		t.Errorf("alice is %+v", got)
	}
	if got := a.session("other"); got.Admin {
		t.Errorf("alice may send orders in another namespace: %+v", got)
	}
	if got := s.loggedIn(bob).session(pool); got.Admin || got.CSRF == "" {
		t.Errorf("bob is %+v", got)
	}
}

// TestOnlyOwnNamespacesAreShown: a lookup role sees only its own namespace, and no members of the
// group.
func TestOnlyOwnNamespacesAreShown(t *testing.T) {
	s := startSecured(t)
	for who, want := range map[string]bool{bob: false, alice: false, "": true} {
		p := s.person("operator/ann")
		if who != "" {
			p = s.loggedIn(who)
		}
		answer := p.send(http.MethodGet, stream, "")
		text := make([]byte, 0, 1<<14)
		for !strings.Contains(string(text), "event: live") {
			piece := make([]byte, 1<<12)
			n, err := answer.Body.Read(piece)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, piece[:n]...)
		}
		_ = answer.Body.Close() // the first bytes are enough
		if got := strings.Contains(string(text), `"other"`); got != want {
			t.Errorf("%.20q sees the other namespace: %v, want %v: %s", who, got, want, text)
		}
	}
}

// policyWithout returns the policy without the lines that contain a text.
func policyWithout(text string) string {
	var out strings.Builder
	for line := range strings.Lines(everybody) {
		if !strings.Contains(line, text) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// ends checks that a stream ends soon after do.
func ends(t *testing.T, answer *http.Response, do func()) {
	t.Helper()
	if answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
	do()
	began := time.Now()
	_, _ = io.Copy(io.Discard, answer.Body) // the error is irrelevant
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the stream ended only after %v", took)
	}
}

// TestRevocationEndsStreams: streams and sessions end when their rule, token, certificate or
// session is removed.
func TestRevocationEndsStreams(t *testing.T) {
	for name, test := range map[string]struct {
		who   func(*secured) *person
		take  func(*secured, *person)
		after int
	}{
		"removed rule":   {func(s *secured) *person { return s.loggedIn(bob) }, func(s *secured, _ *person) { s.change(policyWithout(`"token:bob"`)) }, 403},
		"removed token":  {func(s *secured) *person { return s.loggedIn(bob) }, func(s *secured, _ *person) { s.change(policyWithout("bob")) }, 401},
		"replaced token": {func(s *secured) *person { return s.loggedIn(bob) }, func(s *secured, _ *person) { s.change(strings.Replace(everybody, "BOB", strings.Repeat("ab", 32), 1)) }, 401},
		"other namespaces": {func(s *secured) *person { return s.loggedIn(bob) }, func(s *secured, _ *person) {
			s.change(strings.Replace(everybody, "lookup, namespaces: [pool]", "lookup, namespaces: [other]", 2))
		}, 403},
		"a logout":            {func(s *secured) *person { return s.loggedIn(bob) }, func(_ *secured, p *person) { p.do("POST", "/api/logout", "{}") }, 401},
		"revoked certificate": {func(s *secured) *person { return s.person("lookup/pool") }, func(s *secured, _ *person) { s.revoked.Store(true) }, 401},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSecured(t)
			p := test.who(s)
			ends(t, p.send(http.MethodGet, stream, ""), func() { test.take(s, p) }) //nolint:bodyclose // the test does at its end
			for _, path := range []string{stream, explain} {
				if code, text := p.do(http.MethodGet, path, ""); code != test.after && code != 401 && code != 403 {
					t.Errorf("%s: %d, want %d: %s", path, code, test.after, text)
				}
			}
			if code, text := p.do(http.MethodGet, stream, ""); code != test.after {
				t.Errorf("%d, want %d: %s", code, test.after, text)
			}
		})
	}
}

// TestForgeries: orders that do not come from the page of an authorized visitor are rejected.
func TestForgeries(t *testing.T) {
	s := startSecured(t)
	a, other := s.loggedIn(alice), s.loggedIn(alice)
	ann := s.person("operator/ann")
	ann.csrf = ann.session(pool).CSRF
	for name, test := range map[string]struct {
		who    *person
		method string
		path   string
		body   string
		csrf   string // "": the right one, "-": none
		header map[string]string
		want   int
	}{
		"genuine":                            {who: a, want: 404},
		"genuine, by certificate":            {who: ann, want: 404},
		"no token of the page":               {who: a, csrf: "-", want: 403},
		"no token of the page, certificate":  {who: ann, csrf: "-", want: 403},
		"that of another session":            {who: a, csrf: other.csrf, want: 403},
		"that of a session for certificates": {who: ann, csrf: a.csrf, want: 403},
		"that of a certificate, for one":     {who: a, csrf: ann.csrf, want: 403},
		"another site":                       {who: a, header: map[string]string{"Sec-Fetch-Site": "cross-site"}, want: 403},
		"another port of the host":           {who: a, header: map[string]string{"Sec-Fetch-Site": "same-site"}, want: 403},
		"another origin":                     {who: ann, header: map[string]string{"Origin": "https://evil.example"}, want: 403},
		"no origin at all":                   {who: ann, header: map[string]string{"Origin": "null"}, want: 403},
		"another host":                       {who: ann, header: map[string]string{"Host": "evil.example"}, want: 403},
		"another host's stream":              {who: ann, method: "GET", path: stream, header: map[string]string{"Host": "evil.example"}, want: 403},
		"another site's stream":              {who: ann, method: "GET", path: stream, header: map[string]string{"Sec-Fetch-Site": "cross-site"}, want: 403},
		"an order by GET":                    {who: ann, method: "GET", path: "/api/drain", want: 404},
		"too long a body":                    {who: a, body: `{"namespace":"` + strings.Repeat("x", 20000) + `"}`, want: 400},
		"a token in the address":             {who: ann, method: "GET", path: stream + "&token=" + alice, want: 400},
		"a token in the page's address":      {who: ann, method: "GET", path: "/?access_token=" + alice, want: 400},
		"a header without end":               {who: ann, method: "GET", path: "/", header: map[string]string{"X-Long": strings.Repeat("x", 40<<10)}, want: 431},
	} {
		who := *test.who
		who.header = test.header
		switch test.csrf {
		case "":
		case "-":
			who.csrf = ""
		default:
			who.csrf = test.csrf
		}
		method, path, body := "POST", "/api/drain", drainPool
		if test.method != "" {
			method, body = test.method, ""
		}
		if test.path != "" {
			path = test.path
		}
		if test.body != "" {
			body = test.body
		}
		if got, text := who.do(method, path, body); got != test.want {
			t.Errorf("%s: %d, want %d: %s", name, got, test.want, text)
		}
	}
}

// TestCookieOverTLS: the server chooses the session cookie, so that it cannot be planted, and
// restricts it to the host and to TLS.
func TestCookieOverTLS(t *testing.T) {
	s := startSecured(t)
	p := s.person("")
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	name := "__Host-leasehold_session_" + at.Port()
	planted := &http.Cookie{Name: name, Value: "PLANTEDPLANTEDPLANTEDPLANTED", Path: "/", Secure: true}
	p.client.Jar.SetCookies(at, []*http.Cookie{planted})
	answer := p.send(http.MethodPost, "/api/login", `{"token":"`+bob+`"}`) //nolint:bodyclose // the test does at its end
	if len(answer.Cookies()) != 1 {
		t.Fatal(answer.Status, answer.Cookies())
	}
	c := answer.Cookies()[0]
	if c.Name != name || c.Value == planted.Value || len(c.Value) < 26 || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge <= 0 {
		t.Errorf("the cookie is %v", c)
	}
	for value, want := range map[string]int{c.Value: 200, planted.Value: 401, "": 401, c.Value + "x": 401, strings.ToLower(c.Value): 401} {
		thief := s.person("")
		thief.client.Jar.SetCookies(at, []*http.Cookie{{Name: name, Value: value, Path: "/", Secure: true}})
		if got, _ := thief.do(http.MethodGet, stream, ""); got != want {
			t.Errorf("cookie %q: %d, want %d", value, got, want)
		}
	}
	// Over TLS, the cookie name for plaintext is no session: an attacker on the network could set it.
	thief := s.person("")
	thief.client.Jar.SetCookies(at, []*http.Cookie{{Name: strings.TrimPrefix(name, "__Host-"), Value: c.Value, Path: "/"}})
	if got, _ := thief.do(http.MethodGet, stream, ""); got != 401 {
		t.Errorf("with the other cookie: %d, want 401", got)
	}
	// A second login replaces the session.
	if code, text := p.login(bob); code != 200 {
		t.Fatalf("%d, %s", code, text)
	}
	thief = s.person("")
	thief.client.Jar.SetCookies(at, []*http.Cookie{c})
	if got, _ := thief.do(http.MethodGet, stream, ""); got != 401 {
		t.Errorf("the previous session: %d, want 401", got)
	}
}

// TestHeadersOverTLS: every response has the security headers.
func TestHeadersOverTLS(t *testing.T) {
	s := startSecured(t)
	p := s.person("")
	for _, path := range []string{"/", "/main.js", "/nosuch", "/api/session", stream, explain, "/api/drain"} {
		h := p.send(http.MethodGet, path, "").Header //nolint:bodyclose // the test does at its end
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
				"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Strict-Transport-Security": "max-age=86400", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Access-Control-Allow-Origin": "",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
}

// TestHandshakes: TLS versions before 1.3 and certificates of another CA are rejected.
func TestHandshakes(t *testing.T) {
	s, other := startSecured(t), startSecured(t)
	addr := strings.TrimPrefix(s.url, "https://")
	ask := func(cfg *tls.Config) error {
		conn, err := tls.Dial("tcp", addr, cfg)
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // cleanup only
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 1))
		return err
	}
	base := func() *tls.Config {
		cfg := s.keeper("").ClientTLS()
		cfg.ServerName, cfg.NextProtos = "localhost", []string{"http/1.1"}
		return cfg
	}
	if err := ask(base()); err != nil {
		t.Errorf("a valid handshake: %v", err)
	}
	old := base()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if ask(old) == nil {
		t.Error("TLS 1.2 is accepted")
	}
	strange := base()
	strange.GetClientCertificate = other.keeper("operator/ann").ClientTLS().GetClientCertificate
	if ask(strange) == nil {
		t.Error("a certificate of another CA is accepted")
	}
}

// TestLoginsAreLogged: failed logins are throttled over TLS, too. The log has the identity of each
// caller, and no secrets.
func TestLoginsAreLogged(t *testing.T) {
	s := startSecured(t)
	a := s.loggedIn(alice)
	cookies := a.client.Jar.Cookies(mustParse(t, s.url))
	a.do(http.MethodPost, "/api/drain", drainPool)
	a.do(http.MethodPost, "/api/drain", drainOther)
	a.do(http.MethodPost, "/api/logout", "{}")
	const guess = "leasehold_guessed-wrongly-0123456789"
	p := s.person("")
	many := 0
	for range 10 {
		if code, _ := p.login(guess); code == http.StatusTooManyRequests {
			many++
		} else if code != http.StatusForbidden {
			t.Errorf("a wrong token: %d", code)
		}
	}
	if many < 4 {
		t.Errorf("%d of 10 wrong tokens were rejected without a check", many)
	}
	if code, _ := p.login(alice); code != http.StatusTooManyRequests {
		t.Errorf("the right token while throttled: %d", code)
	}
	log := s.log.String()
	for _, want := range []string{"a login to the dashboard has failed", "dashboard login", "caller=token:alice", "an order from the dashboard has failed", `msg="call denied"`, "method=DrainOwner", "dashboard logout", "from=127.0.0.1"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not contain %q:\n%s", want, log)
		}
	}
	for _, secret := range []string{guess, alice, a.csrf, cookies[0].Value} {
		if strings.Contains(log, secret) {
			t.Errorf("a secret is in the log: %s", secret)
		}
	}
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestViewersOfOneVisitor: the windows of one visitor are limited to a quarter of all viewers.
func TestViewersOfOneVisitor(t *testing.T) {
	s := startSecured(t)
	b := s.loggedIn(bob)
	for range 2 { // a quarter of eight
		if answer := b.send(http.MethodGet, stream, ""); answer.StatusCode != http.StatusOK { //nolint:bodyclose // the test does at its end
			t.Fatal(answer.Status)
		}
	}
	if code, text := b.do(http.MethodGet, stream, ""); code != http.StatusServiceUnavailable || !strings.Contains(text, "2 windows already") {
		t.Errorf("%d, %s", code, text)
	}
	if code, text := s.loggedIn(alice).do(http.MethodGet, stream, ""); code != 200 {
		t.Errorf("another visitor: %d, %s", code, text)
	}
}
