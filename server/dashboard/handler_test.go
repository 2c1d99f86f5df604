package dashboard_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/server/dashboard"
)

const token = "correct horse battery staple"

func newDashboard(t *testing.T, cfg dashboard.Config) *dashboard.Dashboard {
	t.Helper()
	if cfg.Admin == nil {
		cfg.Admin = leaseholdv1.UnimplementedAdminServiceServer{}
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	d, err := dashboard.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// A browser keeps its cookies.
type browser struct {
	handler http.Handler
	cookie  *http.Cookie
	csrf    string
	header  map[string]string
	from    string // an address; "": the default
	tls     bool
}

func (b *browser) do(method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:7401"
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	if b.csrf != "" {
		r.Header.Set("X-Leasehold-Csrf", b.csrf)
	}
	if b.from != "" {
		r.RemoteAddr = b.from
	}
	if b.tls {
		r.TLS = &tls.ConnectionState{}
	}
	for name, value := range b.header {
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	ctx, cancel := context.WithTimeout(r.Context(), browserPatience/6) // a stream would never end
	defer cancel()
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r.WithContext(ctx))
	for _, line := range w.Header().Values("Set-Cookie") {
		if c, err := http.ParseSetCookie(line); err == nil {
			b.cookie = c
		}
	}
	return w
}

func (b *browser) login(t *testing.T, with string) *httptest.ResponseRecorder {
	t.Helper()
	body, err := json.Marshal(map[string]string{"token": with})
	if err != nil {
		t.Fatal(err)
	}
	answer := b.do(http.MethodPost, "/api/login", string(body))
	var session struct{ CSRF string }
	if err := json.NewDecoder(answer.Body).Decode(&session); err != nil {
		t.Fatal(err)
	}
	b.csrf = session.CSRF
	return answer
}

func TestAnswers(t *testing.T) {
	d := newDashboard(t, dashboard.Config{Token: secret.New(token), Hosts: []string{"m1.example.com"}})
	for name, test := range map[string]struct {
		method, path, body string
		header             map[string]string
		want               int
	}{
		"the page":                  {"GET", "/", "", nil, 200},
		"a module":                  {"GET", "/main.js", "", nil, 200},
		"a file that is not":        {"GET", "/secret", "", nil, 404},
		"a way out":                 {"GET", "/../handler.go", "", nil, 307},
		"post the page":             {"POST", "/", "", nil, 405},
		"a known name":              {"GET", "/", "", map[string]string{"Host": "M1.example.com:7401"}, 200},
		"a known name, absolute":    {"GET", "/", "", map[string]string{"Host": "m1.example.com."}, 200},
		"localhost":                 {"GET", "/", "", map[string]string{"Host": "localhost:7401"}, 200},
		"an address":                {"GET", "/", "", map[string]string{"Host": "[fe80::1]:7401"}, 200},
		"another name":              {"GET", "/", "", map[string]string{"Host": "evil.example.com:7401"}, 403},
		"a name like ours":          {"GET", "/", "", map[string]string{"Host": "127.0.0.1.evil.example.com"}, 403},
		"a name like localhost":     {"GET", "/", "", map[string]string{"Host": "notlocalhost"}, 403},
		"another name's stream":     {"GET", "/api/stream", "", map[string]string{"Host": "evil.example.com"}, 403},
		"a stream for another site": {"GET", "/api/stream", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"a key for another port":    {"GET", "/api/explain?namespace=pool&key=x", "", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"a link from another site":  {"GET", "/", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 200},
		"a namespace that is none":  {"GET", "/api/stream?namespace=%3Cscript%3E", "", nil, 422},
		"no key":                    {"GET", "/api/explain?namespace=pool", "", nil, 422},
		"a bad key":                 {"GET", "/api/explain?namespace=pool&key=0xz", "", nil, 422},
		"a long key":                {"GET", "/api/explain?namespace=pool&key=" + strings.Repeat("x", 5000), "", nil, 422},
		"a manager that cannot":     {"GET", "/api/explain?namespace=pool&key=x", "", nil, 422},
		"drain without login":       {"POST", "/api/drain", "{}", nil, 403},
		"move without login":        {"POST", "/api/move", "{}", nil, 403},
		"get a drain":               {"GET", "/api/drain", "", nil, 404},
		"login without a body":      {"POST", "/api/login", "", nil, 400},
		"login with too much":       {"POST", "/api/login", `{"token":"` + strings.Repeat("x", 20000) + `"}`, nil, 400},
		"login with another field":  {"POST", "/api/login", `{"tokem":"x"}`, nil, 400},
		"login from elsewhere":      {"POST", "/api/login", `{"token":"` + token + `"}`, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"login of another origin":   {"POST", "/api/login", `{"token":"` + token + `"}`, map[string]string{"Origin": "http://evil.example.com"}, 403},
	} {
		b := &browser{handler: d, header: test.header}
		answer := b.do(test.method, test.path, test.body)
		if answer.Code != test.want {
			t.Errorf("%s: status %d, want %d", name, answer.Code, test.want)
		}
		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		} {
			if got := answer.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		csp := answer.Header().Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: the policy is %q", name, csp)
		}
	}
}

// TestReadOnly: without an admin token every order is rejected with the reason.
func TestReadOnly(t *testing.T) {
	d := newDashboard(t, dashboard.Config{})
	b := &browser{handler: d}
	for _, path := range []string{"/api/login", "/api/drain", "/api/move"} {
		answer := b.do(http.MethodPost, path, `{"token":""}`)
		text, err := io.ReadAll(answer.Body)
		if answer.Code != http.StatusForbidden || err != nil || !strings.Contains(string(text), "--admin-token-file") {
			t.Errorf("%s: %d, %s, %v", path, answer.Code, text, err)
		}
	}
	var session struct{ Possible, Admin bool }
	if err := json.NewDecoder(b.do(http.MethodGet, "/api/session", "").Body).Decode(&session); err != nil || session.Possible || session.Admin {
		t.Errorf("%+v, %v", session, err)
	}
}

func TestShortTokenIsRejected(t *testing.T) {
	if _, err := dashboard.New(dashboard.Config{Admin: leaseholdv1.UnimplementedAdminServiceServer{}, Token: secret.New("short")}); err == nil {
		t.Error("a token that can be guessed is accepted")
	}
}

func TestCookie(t *testing.T) {
	d := newDashboard(t, dashboard.Config{Token: secret.New(token)})
	for _, secure := range []bool{false, true} {
		b := &browser{handler: d, tls: secure}
		if !b.tls {
			b.header = map[string]string{"X-Forwarded-Proto": "http"}
		}
		if answer := b.login(t, token); answer.Code != 200 || b.csrf == "" {
			t.Fatalf("status %d", answer.Code)
		}
		path := map[bool]string{false: "/api/", true: "/"}[secure] // a __Host- cookie applies to the whole host
		if c := b.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != secure || c.MaxAge <= 0 || c.Path != path || strings.HasPrefix(c.Name, "__Host-") != secure {
			t.Errorf("with TLS %v the cookie is %v", secure, c)
		}
	}
}

// TestCookieBehindProxy: behind a TLS proxy, which sets X-Forwarded-Proto, the cookie is for TLS
// only.
func TestCookieBehindProxy(t *testing.T) {
	b := &browser{handler: newDashboard(t, dashboard.Config{Token: secret.New(token)}), header: map[string]string{"X-Forwarded-Proto": "https"}}
	if b.login(t, token); b.cookie == nil || !b.cookie.Secure {
		t.Errorf("the cookie is %v, want it for TLS only", b.cookie)
	}
}

// TestManagersOnOneHost: a browser sends the cookies of a host to all of its ports. Sessions of
// managers on one host must be independent.
func TestManagersOnOneHost(t *testing.T) {
	names := make(map[string]bool)
	for _, host := range []string{"localhost:7401", "localhost:7402", "[::1]:7401", "proxied.localhost"} {
		b := &browser{handler: newDashboard(t, dashboard.Config{Token: secret.New(token)}), header: map[string]string{"Host": host}}
		b.login(t, token)
		names[b.cookie.Name] = true
		if answer := b.do(http.MethodGet, "/api/session", ""); !strings.Contains(answer.Body.String(), `"admin":true`) {
			t.Errorf("at %s: %s", host, answer.Body)
		}
	}
	if len(names) != 3 {
		t.Errorf("the cookies are %v, want one for each port, and one without a port", names)
	}
}

// TestLoginIsThrottled: after failed logins an address is throttled, also with the right token, so
// that the response does not depend on it. Other addresses are not throttled.
func TestLoginIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDashboard(t, dashboard.Config{Token: secret.New(token)})
		defer d.Close()
		b := &browser{handler: d, from: "[2001:db8::1]:1234"}
		refused := 0
		for range 20 {
			if b.login(t, "wrong").Code == http.StatusTooManyRequests {
				refused++
			}
			b.from = "[2001:db8::2]:1235" // another address of the same network
		}
		if refused != 15 {
			t.Errorf("%d of 20 wrong tokens were not checked, want 15", refused)
		}
		if answer := b.login(t, token); answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" {
			t.Errorf("status %d after many failures", answer.Code)
		}
		for _, from := range []string{"192.0.2.1:1234", "[2001:db8:0:1::1]:1234"} {
			if answer := (&browser{handler: d, from: from}).login(t, token); answer.Code != 200 {
				t.Errorf("status %d for %s, without failed logins", answer.Code, from)
			}
		}
		time.Sleep(3 * time.Second)
		if answer := b.login(t, token); answer.Code != 200 {
			t.Errorf("status %d a while later", answer.Code)
		}
	})
}

func TestPageIsSmall(t *testing.T) {
	const most = 200 << 10
	var sum int64
	err := fs.WalkDir(os.DirFS("page"), ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil || sum == 0 || sum > most {
		t.Errorf("the page has %d bytes, want %d at most; %v", sum, most, err)
	}
	t.Logf("the page has %d bytes", sum)
}

// TestPageKeepsItsPolicy: the page has no inline and no external content, which its policy blocks.
func TestPageKeepsItsPolicy(t *testing.T) {
	text, err := os.ReadFile("page/index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, violation := range []string{"<style", " style=", " onclick=", "javascript:", "http://", "https://", "<script>"} {
		if strings.Contains(string(text), violation) {
			t.Errorf("index.html has %s", violation)
		}
	}
	modules, err := fs.Glob(os.DirFS("page"), "*.js")
	if err != nil || len(modules) < 5 {
		t.Fatal(modules, err)
	}
	for _, module := range modules {
		text, err := os.ReadFile("page/" + module)
		if err != nil {
			t.Fatal(err)
		}
		for _, violation := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", `setAttribute("style"`} {
			if strings.Contains(string(text), violation) {
				t.Errorf("%s has %s", module, violation)
			}
		}
	}
}

// TestStreamIsCompressed: a client that accepts gzip receives the same text, compressed.
func TestStreamIsCompressed(t *testing.T) {
	server := httptest.NewServer(newDashboard(t, dashboard.Config{}))
	defer server.Close()
	read := func(encoding string) string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Encoding", encoding)
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close() //nolint:errcheck // it has been read
		if got := answer.Header.Get("Content-Encoding"); got != strings.TrimSuffix(encoding, "identity") {
			t.Fatalf("asked for %s, it is %q", encoding, got)
		}
		body := io.Reader(answer.Body)
		if encoding == "gzip" {
			if body, err = gzip.NewReader(answer.Body); err != nil {
				t.Fatal(err)
			}
		}
		text, lines := "", bufio.NewScanner(body)
		for range 8 { // two frames
			if !lines.Scan() {
				t.Fatal(lines.Err())
			}
			text += lines.Text() + "\n"
		}
		return text
	}
	for _, encoding := range []string{"gzip", "identity"} {
		if text := read(encoding); !strings.Contains(text, "event: snapshot\ndata: {") || !strings.Contains(text, "event: live\ndata: {") {
			t.Errorf("%s: %s", encoding, text)
		}
	}
}
