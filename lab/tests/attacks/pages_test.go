//go:build linux

package attacks

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A pageCase is a request to the HTTP port.
type pageCase struct {
	name    string
	cert    func(t *testing.T, k *authority) *tls.Certificate // nil: none
	method  string                                            // "": GET
	path    string
	host    string   // "": the server's address
	headers []string // lines
	body    string
	want    string // the status, or several separated by "|"
}

// text returns the bytes of the request.
func (p *pageCase) text() string {
	method, host := "GET", "127.0.0.1"
	if p.method != "" {
		method = p.method
	}
	if p.host != "" {
		host = p.host
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", method, p.path, host)
	for _, h := range p.headers {
		b.WriteString(h + "\r\n")
	}
	if p.body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(p.body))
	}
	return b.String() + "\r\n" + p.body
}

// An answer is a response. Event streams have no body.
type answer struct {
	code    int
	header  http.Header
	cookies []*http.Cookie
	body    []byte
}

// hasStatus reports whether the status is one of several, separated by "|".
func (a *answer) hasStatus(want string) bool { return oneOf(strconv.Itoa(a.code), want) }

// page sends a request from a loopback address, and returns the response. The connection stays
// open until the test ends.
func (c *testbed) page(t *testing.T, p *pageCase, from string) *answer {
	t.Helper()
	var cert *tls.Certificate
	if p.cert != nil {
		cert = p.cert(t, c.secured)
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := tls.DialWithDialer(dialer, "tcp", c.http, c.secured.clientTLS(cert, "http/1.1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the response was read
	if err := conn.SetDeadline(time.Now().Add(eventTimeout)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, p.text())                       // the server may close before it has read all
	heard, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // closed with the connection
	if err != nil {
		t.Fatalf("no response: %v", err)
	}
	out := &answer{code: heard.StatusCode, header: heard.Header, cookies: heard.Cookies()}
	if !strings.HasPrefix(heard.Header.Get("Content-Type"), "text/event-stream") {
		out.body, _ = io.ReadAll(io.LimitReader(heard.Body, 1<<20)) // only the status is required
	}
	return out
}

// A login is the session of a browser.
type login struct{ cookie, csrf string }

func (c *testbed) login(t *testing.T, token string) login {
	t.Helper()
	heard := c.page(t, &pageCase{method: "POST", path: "/api/login", body: `{"token":"` + token + `"}`}, "127.0.0.1")
	var reason struct{ CSRF string }
	if err := json.Unmarshal(heard.body, &reason); err != nil || heard.code != http.StatusOK || len(heard.cookies) != 1 {
		t.Fatalf("status %d, %v", heard.code, err)
	}
	cookie := heard.cookies[0]
	if !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || !strings.HasPrefix(cookie.Name, "__Host-") {
		t.Errorf("the cookie is %v", cookie)
	}
	return login{cookie.Name + "=" + cookie.Value, reason.CSRF}
}

// anonymousPages are requests without credentials, or with invalid ones.
func anonymousPages() []pageCase {
	evil := "https://evil.example"
	token := `{"token":"leasehold_` + strings.Repeat("x", 43) + `"}`
	return []pageCase{
		{name: "foreign Host header", path: "/", host: "evil.example", want: "403"},
		{name: "foreign Host header, session", path: "/api/session", host: "evil.example:7401", want: "403"},
		{name: "Host header with our address as prefix", path: "/", host: "127.0.0.1.evil.example", want: "403"},
		{name: "Host header with localhost as suffix", path: "/", host: "evil-localhost", want: "403"},
		{name: "foreign host in the request target", path: evil + "/", want: "403"},
		{name: "no host", path: "/", host: " ", want: "400|403"},
		{name: "a host with a user", path: "/", host: "127.0.0.1@evil.example", want: "400|403"},
		{name: "a login from a foreign page", method: "POST", path: "/api/login", headers: []string{"Origin: " + evil}, body: token, want: "403"},
		{name: "a login from the null origin", method: "POST", path: "/api/login", headers: []string{"Origin: null"}, body: token, want: "403"},
		{name: "a cross-site login", method: "POST", path: "/api/login", headers: []string{"Sec-Fetch-Site: cross-site"}, body: token, want: "403"},
		{name: "a cross-site request", path: "/api/session", headers: []string{"Sec-Fetch-Site: same-site"}, want: "403"},
		{name: "a token in the query", path: "/api/stream?token=x", want: "400"},
		{name: "a stream without credentials", path: "/api/stream?namespace=honest", want: "401"},
		{name: "an explain request without credentials", path: "/api/explain?namespace=honest&key=x", want: "401"},
		{name: "a drain without credentials", method: "POST", path: "/api/drain", body: `{"namespace":"honest","owner":"owner-0"}`, want: "401"},
		{name: "metrics without credentials", path: "/metrics", want: "401"},
		{name: "metrics, escaped", path: "/%6detrics", want: "401"},
		{name: "metrics, with a dot", path: "/./metrics", want: "301|307|404"},
		{name: "metrics, with dots", path: "/api/../metrics", want: "301|307|404"},
		{name: "metrics, with two slashes", path: "//metrics", want: "301|307|404"},
		{name: "metrics, with a trailing slash", path: "/metrics/", want: "404"},
		{name: "metrics in capitals", path: "/METRICS", want: "404"},
		{name: "metrics for an owner", cert: certificateOf("owner/other/victim"), path: "/metrics", want: "403"},
		{name: "metrics with an unknown token", path: "/metrics", headers: []string{"Authorization: Bearer leasehold_" + strings.Repeat("x", 43)}, want: "401"},
		{name: "profiles", path: "/debug/pprof/heap", want: "404"},
		{name: "path traversal", path: "/../../../etc/passwd", want: "301|307|400|404"},
		{name: "path traversal, escaped", path: "/%2e%2e/%2e%2e/etc/passwd", want: "301|307|400|404"},
		{name: "path traversal, partly escaped", path: "/..%2f..%2fetc%2fpasswd", want: "301|307|400|404"},
		{name: "a path with a zero byte", path: "/main.js%00.html", want: "404"},
		{name: "a hidden file", path: "/.git/config", want: "404"},
		{name: "a drain by GET", path: "/api/drain", want: "404|405"},
		{name: "the page by PUT", method: "PUT", path: "/", body: "{}", want: "405"},
		{name: "TRACE", method: "TRACE", path: "/", want: "405"},
		{name: "CONNECT", method: "CONNECT", path: "evil.example:443", want: "403|404|405"},
		{name: "an oversized body", method: "POST", path: "/api/login", body: `{"token":"` + strings.Repeat("x", 20_000) + `"}`, want: "400|413"},
		{name: "a malformed body", method: "POST", path: "/api/login", body: "<xml/>", want: "400"},
		{name: "oversized headers", path: "/", headers: []string{"X: " + strings.Repeat("x", 40<<10)}, want: "431"},
		{name: "too many headers", path: "/", headers: strings.Split(strings.Repeat("X: 1\n", 9999)+"X: 1", "\n"), want: "431"},
		{name: "two Content-Length headers", method: "POST", path: "/api/login", headers: []string{"Content-Length: 1", "Content-Length: 2"}, want: "400"},
		{name: "an unknown transfer encoding", method: "POST", path: "/api/login", headers: []string{"Transfer-Encoding: gzip, chunked"}, want: "501"},
		{name: "a login with an unknown token", method: "POST", path: "/api/login", body: token, want: "403"},
	}
}

// authenticatedPages are requests of identified callers without the permission.
func authenticatedPages(landlord, reader login) []pageCase {
	order := `{"namespace":"honest","owner":"owner-0"}`
	own := `{"namespace":"other","owner":"victim"}`
	post := func(name, want, body string, headers ...string) pageCase {
		return pageCase{name: name, method: "POST", path: "/api/drain", headers: headers, body: body, want: want}
	}
	cookie := func(l login) string { return "Cookie: " + l.cookie }
	csrf := func(s string) string { return "X-Leasehold-Csrf: " + s }
	name, value, _ := strings.Cut(landlord.cookie, "=")
	withCert := func(p pageCase, party string) pageCase {
		p.cert = certificateOf(party)
		return p
	}
	return []pageCase{
		post("a drain without the CSRF token", "403", own, cookie(landlord)),
		post("a drain with a wrong CSRF token", "403", own, cookie(landlord), csrf(strings.Repeat("x", 26))),
		post("a drain with another session's CSRF token", "403", own, cookie(landlord), csrf(reader.csrf)),
		post("a drain from a foreign page", "403", own, cookie(landlord), csrf(landlord.csrf), "Origin: https://evil.example"),
		post("a cross-site drain", "403", own, cookie(landlord), csrf(landlord.csrf), "Sec-Fetch-Site: cross-site"),
		post("a cookie of another manager", "401", own, "Cookie: "+name+"="+strings.Repeat("A", 26), csrf(landlord.csrf)),
		post("a cookie under another name", "401", own, "Cookie: leasehold_session="+value, csrf(landlord.csrf)),
		post("a cookie without the __Host- prefix", "401", own, "Cookie: "+strings.TrimPrefix(name, "__Host-")+"="+value, csrf(landlord.csrf)),
		post("a CSRF token without a cookie", "401", own, csrf(landlord.csrf)),
		post("a drain in another namespace", "403", order, cookie(landlord), csrf(landlord.csrf)),
		post("a drain with a read-only token", "403", order, cookie(reader), csrf(reader.csrf)),
		withCert(post("a drain with a certificate, without a CSRF token", "403", order), "operator/chief"),
		withCert(post("a drain with a certificate, and another session's CSRF token", "403", order, csrf(landlord.csrf)), "operator/chief"),
		{name: "a stream of another namespace", path: "/api/stream?namespace=honest", headers: []string{cookie(landlord)}, want: "403"},
		{name: "an explain request for another namespace", path: "/api/explain?namespace=honest&key=x", headers: []string{cookie(landlord)}, want: "403"},
		{name: "a script as namespace", path: "/api/stream?namespace=%3Cscript%3E", headers: []string{cookie(landlord)}, want: "403|422"},
		{name: "an explain request of an owner", cert: certificateOf("owner/honest/traitor"), path: "/api/explain?namespace=honest&key=x", want: "403"},
		{name: "a stream of an owner", cert: certificateOf("owner/honest/traitor"), path: "/api/stream?namespace=honest", want: "403"},
		{name: "an explain request with a valid certificate without a role", cert: signedBy(rootCA, withIdentity("stranger")), path: "/api/explain?namespace=honest&key=x", want: "403"},
	}
}

// TestPages: the HTTP port shows only permitted data, and rejects cross-site and
// unauthorized requests.
func TestPages(t *testing.T) {
	t.Parallel()
	k := newAuthority(t)
	c := newTestbed(t, settings{secured: k})
	landlord, reader := c.login(t, k.tokens["landlord"]), c.login(t, k.tokens["reader"])
	for _, test := range append(anonymousPages(), authenticatedPages(landlord, reader)...) {
		c.attack(t, test.name, func(t *testing.T) {
			got := c.page(t, &test, "127.0.0.1")
			if !got.hasStatus(test.want) {
				t.Errorf("status %d, want %s", got.code, test.want)
			}
			if got.code == http.StatusForbidden && got.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Error("the response lacks X-Content-Type-Options: nosniff")
			}
		})
	}
	c.attack(t, "guessed logins", func(t *testing.T) {
		try := func(token string) int {
			body := `{"token":"` + token + `"}`
			return c.page(t, &pageCase{method: "POST", path: "/api/login", body: body}, "127.9.9.9").code
		}
		var got []int
		for i := range 12 {
			got = append(got, try(fmt.Sprintf("leasehold_%043d", i)))
		}
		if got[0] != http.StatusForbidden || got[11] != http.StatusTooManyRequests {
			t.Errorf("the statuses are %v", got)
		}
		if last := try(k.tokens["landlord"]); last != http.StatusTooManyRequests {
			t.Errorf("the valid token has another status than guesses: %d", last)
		}
	})
	c.attack(t, "too many event streams", func(t *testing.T) {
		refused := 0
		for range 300 {
			p := pageCase{path: "/api/stream?namespace=other", headers: []string{"Cookie: " + landlord.cookie}}
			if c.page(t, &p, "127.0.0.1").code != http.StatusOK {
				refused++
			}
		}
		if refused == 0 {
			t.Error("the event streams of a session are not limited")
		}
	})
	for _, text := range []string{"an order was refused", "a login to the dashboard has failed", "refused at the dashboard", "refused"} {
		if !c.audited(t, text) {
			t.Errorf("the audit log has no record %q", text)
		}
	}
}

// audited reports whether the audit log has a record with a prefix.
func (c *testbed) audited(t *testing.T, text string) bool {
	t.Helper()
	for _, l := range c.lines(t) {
		if l.Audit && strings.HasPrefix(l.Msg, text) {
			return true
		}
	}
	return false
}
