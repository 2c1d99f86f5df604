package leasehttp_test

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// FuzzParseSource: every valid source is equal after String and ParseSource.
func FuzzParseSource(f *testing.F) {
	for _, text := range []string{
		"header:X-User", "path:2,query:user", "cookie:sid", "header:x-USER, query: user", "path:0", "path:+1", "path:01",
		"header:Leasehold-Key", "header:leasehold_key", "header:Connection", "query:", "query:a,b", "cookie:a=b", ",", ":",
		strings.Repeat("path:1,", 20) + "path:1", "query:\xff", "header:host",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := leasehttp.ParseSource(text)
		if err != nil {
			if leasehold.KindOf(err) != leasehold.ErrInvalid || len(err.Error()) > 1000 {
				t.Fatalf("kind %v, %d bytes: %v", leasehold.KindOf(err), len(err.Error()), err)
			}
			return
		}
		again, err := leasehttp.ParseSource(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q is formatted as %q, which is parsed as %q: %v", text, s, again, err)
		}
	})
}

// FuzzSourceName: a gateway and its server derive the same name from every request, or the
// gateway rejects it. Otherwise a caller could have a request routed to a server that does not
// own its key.
func FuzzSourceName(f *testing.F) {
	const all = "header:X-User|path:2|query:user|cookie:sid|header:Host|path:1,query:user"
	for i := range len(strings.Split(all, "|")) {
		for _, request := range []string{
			"GET /users/alice?user=bob HTTP/1.1\r\nHost: h\r\nX-User: carol\r\nCookie: sid=dave\r\n\r\n",
			"GET /a%2Fb/%2e%2E/x?user=%zz&user=a+b;c HTTP/1.1\r\nHost: h\r\nX-User: a\r\nX-User:  b \r\n\r\n",
			"GET //users//alice HTTP/1.1\r\nHost: h:80\r\nCookie: sid=\"a;sid=b\"; sid = c\r\nCookie: sid=d\r\n\r\n",
			"GET http://other/users/%61lice HTTP/1.1\r\nHost: h\r\nX-User: \xff\x80\r\n\r\n",
			"OPTIONS * HTTP/1.1\r\nHost: \r\n\r\n",
			"GET /a/b%c3%28?user=&user=x#user=y HTTP/1.1\r\nHost: h\r\nX_User: z\r\n\r\n",
		} {
			f.Add(byte(i), []byte(request))
		}
	}
	f.Fuzz(func(t *testing.T, which byte, raw []byte) {
		sources := strings.Split(all, "|")
		s, err := leasehttp.ParseSource(sources[int(which)%len(sources)])
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil || r.ContentLength != 0 || r.Method == http.MethodConnect {
			return // not a request without a body
		}
		name, err := s.Name(r)
		if err != nil {
			if leasehold.KindOf(err) != leasehold.ErrInvalid {
				t.Fatal(err)
			}
			return
		}
		if name == "" {
			t.Fatal("the name is empty")
		}
		r.URL.Host, r.RequestURI, r.Body = "server:80", "", http.NoBody
		if r.URL.Scheme = "http"; r.Host == "" {
			r.Host = name
		}
		var wire bytes.Buffer
		if r.Write(&wire) != nil {
			return // it cannot be forwarded
		}
		behind, err := http.ReadRequest(bufio.NewReader(&wire))
		if err != nil {
			return // the server rejects it
		}
		if got, err := s.Name(behind); err == nil && got != name {
			t.Fatalf("%s: the gateway derives %q, the server %q, from\n%q", s, name, got, raw)
		}
	})
}
