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

// A pageCase is a request to the port for people and their tools.
type pageCase struct {
	name    string
	show    func(t *testing.T, k *keep) *tls.Certificate // nil: none
	method  string                                       // "": GET
	path    string
	host    string   // "": an address, as it should be
	headers []string // lines
	body    string
	want    string // the status; several may be right
}

// text is the request as it is sent.
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

// An answer is what a page answers. Of a stream there is no body.
type answer struct {
	code    int
	header  http.Header
	cookies []*http.Cookie
	body    []byte
}

// is reports whether the status is one of some.
func (a *answer) is(want string) bool { return oneOf(strconv.Itoa(a.code), want) }

// page asks, from some address of the loopback, and returns the answer. The connection
// stays until the test ends.
func (c *castle) page(t *testing.T, p *pageCase, from string) *answer {
	t.Helper()
	var cert *tls.Certificate
	if p.show != nil {
		cert = p.show(t, c.secured)
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := tls.DialWithDialer(dialer, "tcp", c.http, c.secured.showing(cert, "http/1.1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the answer is read
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, p.text())                       // it may have heard enough before the end
	heard, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // it ends with the connection
	if err != nil {
		t.Fatalf("there is no answer: %v", err)
	}
	out := &answer{code: heard.StatusCode, header: heard.Header, cookies: heard.Cookies()}
	if !strings.HasPrefix(heard.Header.Get("Content-Type"), "text/event-stream") {
		out.body, _ = io.ReadAll(io.LimitReader(heard.Body, 1<<20)) // the status is what counts
	}
	return out
}

// A login is what a browser keeps.
type login struct{ cookie, csrf string }

func (c *castle) login(t *testing.T, token string) login {
	t.Helper()
	heard := c.page(t, &pageCase{method: "POST", path: "/api/login", body: `{"token":"` + token + `"}`}, "127.0.0.1")
	var says struct{ CSRF string }
	if err := json.Unmarshal(heard.body, &says); err != nil || heard.code != http.StatusOK || len(heard.cookies) != 1 {
		t.Fatalf("status %d, %v", heard.code, err)
	}
	cookie := heard.cookies[0]
	if !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || !strings.HasPrefix(cookie.Name, "__Host-") {
		t.Errorf("the cookie is %v", cookie)
	}
	return login{cookie.Name + "=" + cookie.Value, says.CSRF}
}

// strangersPages are for whoever is nobody.
func strangersPages() []pageCase {
	evil := "https://evil.example"
	token := `{"token":"leasehold_` + strings.Repeat("x", 43) + `"}`
	return []pageCase{
		{name: "a foreign host", path: "/", host: "evil.example", want: "403"},
		{name: "a foreign host, for the session", path: "/api/session", host: "evil.example:7401", want: "403"},
		{name: "a host that begins like ours", path: "/", host: "127.0.0.1.evil.example", want: "403"},
		{name: "a host that ends like ours", path: "/", host: "evil-localhost", want: "403"},
		{name: "a foreign host in the address", path: evil + "/", want: "403"},
		{name: "no host", path: "/", host: " ", want: "400|403"},
		{name: "a host with a user", path: "/", host: "127.0.0.1@evil.example", want: "400|403"},
		{name: "a login from a foreign page", method: "POST", path: "/api/login", headers: []string{"Origin: " + evil}, body: token, want: "403"},
		{name: "a login from no page", method: "POST", path: "/api/login", headers: []string{"Origin: null"}, body: token, want: "403"},
		{name: "a login across sites", method: "POST", path: "/api/login", headers: []string{"Sec-Fetch-Site: cross-site"}, body: token, want: "403"},
		{name: "a question across sites", path: "/api/session", headers: []string{"Sec-Fetch-Site: same-site"}, want: "403"},
		{name: "a token in the address", path: "/api/stream?token=x", want: "400"},
		{name: "a stream of nobody", path: "/api/stream?namespace=honest", want: "401"},
		{name: "a question of nobody", path: "/api/explain?namespace=honest&key=x", want: "401"},
		{name: "an order of nobody", method: "POST", path: "/api/drain", body: `{"namespace":"honest","owner":"owner-0"}`, want: "401"},
		{name: "metrics for nobody", path: "/metrics", want: "401"},
		{name: "metrics, written otherwise", path: "/%6detrics", want: "401"},
		{name: "metrics, with a dot", path: "/./metrics", want: "301|307|404"},
		{name: "metrics, by a detour", path: "/api/../metrics", want: "301|307|404"},
		{name: "metrics, with two slashes", path: "//metrics", want: "301|307|404"},
		{name: "metrics, with a slash behind", path: "/metrics/", want: "404"},
		{name: "metrics in capitals", path: "/METRICS", want: "404"},
		{name: "metrics for an owner", show: of("owner/other/victim"), path: "/metrics", want: "403"},
		{name: "metrics for a token that nobody knows", path: "/metrics", headers: []string{"Authorization: Bearer leasehold_" + strings.Repeat("x", 43)}, want: "401"},
		{name: "profiles", path: "/debug/pprof/heap", want: "404"},
		{name: "a way out", path: "/../../../etc/passwd", want: "301|307|400|404"},
		{name: "a way out in escapes", path: "/%2e%2e/%2e%2e/etc/passwd", want: "301|307|400|404"},
		{name: "a way out in half escapes", path: "/..%2f..%2fetc%2fpasswd", want: "301|307|400|404"},
		{name: "a way out with a zero", path: "/main.js%00.html", want: "404"},
		{name: "a file that begins with a dot", path: "/.git/config", want: "404"},
		{name: "an order by GET", path: "/api/drain", want: "404|405"},
		{name: "the page by PUT", method: "PUT", path: "/", body: "{}", want: "405"},
		{name: "TRACE", method: "TRACE", path: "/", want: "405"},
		{name: "CONNECT", method: "CONNECT", path: "evil.example:443", want: "403|404|405"},
		{name: "a body that is too long", method: "POST", path: "/api/login", body: `{"token":"` + strings.Repeat("x", 20_000) + `"}`, want: "400|413"},
		{name: "a body that is none", method: "POST", path: "/api/login", body: "<xml/>", want: "400"},
		{name: "headers that are too long", path: "/", headers: []string{"X: " + strings.Repeat("x", 40<<10)}, want: "431"},
		{name: "too many headers", path: "/", headers: strings.Split(strings.Repeat("X: 1\n", 9999)+"X: 1", "\n"), want: "431"},
		{name: "two lengths", method: "POST", path: "/api/login", headers: []string{"Content-Length: 1", "Content-Length: 2"}, want: "400"},
		{name: "a packing that there is not", method: "POST", path: "/api/login", headers: []string{"Transfer-Encoding: gzip, chunked"}, want: "501"},
		{name: "a login with a token that nobody knows", method: "POST", path: "/api/login", body: token, want: "403"},
	}
}

// knownPages are for those who have logged in, or have a certificate, and want more.
func knownPages(landlord, reader login) []pageCase {
	order := `{"namespace":"honest","owner":"owner-0"}`
	own := `{"namespace":"other","owner":"victim"}`
	post := func(name, want, body string, headers ...string) pageCase {
		return pageCase{name: name, method: "POST", path: "/api/drain", headers: headers, body: body, want: want}
	}
	cookie := func(l login) string { return "Cookie: " + l.cookie }
	csrf := func(s string) string { return "X-Leasehold-Csrf: " + s }
	name, value, _ := strings.Cut(landlord.cookie, "=")
	withCert := func(p pageCase, party string) pageCase {
		p.show = of(party)
		return p
	}
	return []pageCase{
		post("an order without the page's token", "403", own, cookie(landlord)),
		post("an order with a wrong token", "403", own, cookie(landlord), csrf(strings.Repeat("x", 26))),
		post("an order with the token of another's page", "403", own, cookie(landlord), csrf(reader.csrf)),
		post("an order from a foreign page", "403", own, cookie(landlord), csrf(landlord.csrf), "Origin: https://evil.example"),
		post("an order across sites", "403", own, cookie(landlord), csrf(landlord.csrf), "Sec-Fetch-Site: cross-site"),
		post("a cookie of another manager", "401", own, "Cookie: "+name+"="+strings.Repeat("A", 26), csrf(landlord.csrf)),
		post("a cookie under another name", "401", own, "Cookie: leasehold_session="+value, csrf(landlord.csrf)),
		post("a cookie that any host could set", "401", own, "Cookie: "+strings.TrimPrefix(name, "__Host-")+"="+value, csrf(landlord.csrf)),
		post("the page's token without a cookie", "401", own, csrf(landlord.csrf)),
		post("an order in another namespace", "403", order, cookie(landlord), csrf(landlord.csrf)),
		post("an order of who may look", "403", order, cookie(reader), csrf(reader.csrf)),
		withCert(post("an order with a certificate, from no page", "403", order), "operator/chief"),
		withCert(post("an order with a certificate, and the token of another", "403", order, csrf(landlord.csrf)), "operator/chief"),
		{name: "a stream of another namespace", path: "/api/stream?namespace=honest", headers: []string{cookie(landlord)}, want: "403"},
		{name: "a question about another namespace", path: "/api/explain?namespace=honest&key=x", headers: []string{cookie(landlord)}, want: "403"},
		{name: "a script for a namespace", path: "/api/stream?namespace=%3Cscript%3E", headers: []string{cookie(landlord)}, want: "403|422"},
		{name: "a question of an owner", show: of("owner/honest/traitor"), path: "/api/explain?namespace=honest&key=x", want: "403"},
		{name: "a stream of an owner", show: of("owner/honest/traitor"), path: "/api/stream?namespace=honest", want: "403"},
		{name: "a question of a stranger with a good certificate", show: by(ours, is("stranger")), path: "/api/explain?namespace=honest&key=x", want: "403"},
	}
}

// The port for people and their tools shows nobody more than he may see, and takes no
// orders that nobody gave.
func TestPages(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	c := newCastle(t, settings{secured: k})
	landlord, reader := c.login(t, k.tokens["landlord"]), c.login(t, k.tokens["reader"])
	for _, test := range append(strangersPages(), knownPages(landlord, reader)...) {
		c.attack(t, test.name, func(t *testing.T) {
			heard := c.page(t, &test, "127.0.0.1")
			if !heard.is(test.want) {
				t.Errorf("status %d, want %s", heard.code, test.want)
			}
			if heard.code == http.StatusForbidden && heard.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Error("the answer may be taken for something else")
			}
		})
	}
	c.attack(t, "logins by trial", func(t *testing.T) {
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
			t.Errorf("who guesses can tell the right token: status %d", last)
		}
	})
	c.attack(t, "windows without end", func(t *testing.T) {
		refused := 0
		for range 300 {
			p := pageCase{path: "/api/stream?namespace=other", headers: []string{"Cookie: " + landlord.cookie}}
			if c.page(t, &p, "127.0.0.1").code != http.StatusOK {
				refused++
			}
		}
		if refused == 0 {
			t.Error("one login may have as many windows as it likes")
		}
	})
	for _, text := range []string{"an order was refused", "a login to the dashboard has failed", "refused at the dashboard", "refused"} {
		if !c.audited(t, text) {
			t.Errorf("the audit has nothing of %q", text)
		}
	}
}

// audited reports whether the audit has a line that begins so.
func (c *castle) audited(t *testing.T, text string) bool {
	t.Helper()
	for _, l := range c.lines(t) {
		if l.Audit && strings.HasPrefix(l.Msg, text) {
			return true
		}
	}
	return false
}
