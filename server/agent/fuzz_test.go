package agent

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

// FuzzBody: a body is parsed as one object, or rejected with a JSON error. An accepted key has
// exactly one encoding.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"name":"x"}`, `{"key":"00000000000000ff"}`, `{"name":"\ud800"}`, `{"name":"a\ufffd"}`, `{"name":"x"}{}`, `{"nome":1}`, `[]`, "",
		`{"namespace":"n","addr":"a:1","weight":1e400}`, `{"namespace":"n","addr":"0.0.0.0:1","ttl_ms":-1}`,
		`{"namespace":"n","addr":"a:1","name":"b","load":"checks","ttl_ms":1000,"timeout_ms":99999999999999}`,
		`{"name":"x","NAME":"y"}`, strings.Repeat("[", 20_000), "{\"name\":\"\xff\"}",
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var key keyDocument
		if readBody(t, body, &key) {
			if k, err := key.parse(); err == nil && key.Key != nil && k.String() != strings.ToLower(*key.Key) {
				t.Fatalf("%s is parsed as key %v", body, k)
			} else if err != nil && leasehold.KindOf(err) != leasehold.ErrInvalid {
				t.Fatal(err)
			}
		}
		var join joinRequest
		if readBody(t, body, &join) && join.validate() == nil {
			if !utf8.ValidString(join.Name) || !utf8.ValidString(join.Addr) || len(join.Name) > leasehold.MaxOwnerIDLen || len(join.Addr) > leasehold.MaxAddrLen {
				t.Fatalf("%s is accepted", body)
			}
		}
	})
}

// readBody parses a body as a handler does, and checks the rejection.
func readBody(t *testing.T, body string, into any) bool {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	err := jsonapi.Read(w, r, maxBody, into)
	if err == nil {
		return true
	}
	fail(w, err)
	var said errorDocument
	if json.Unmarshal(w.Body.Bytes(), &said) != nil || said.Error.Message == "" || w.Code < 400 || w.Code >= 500 || w.Body.Len() > 4096 {
		t.Fatalf("%q is rejected with %d, %d bytes: %s", body, w.Code, w.Body.Len(), w.Body)
	}
	return false
}

// FuzzQuery: a query with an unknown or repeated parameter is rejected.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{"key=00000000000000ff", "name=a%20b&refresh=true", "name=a&name=b", "nome=a", "name=%zz", "a;b", "name=%FF", "since=-1", "since=18446744073709551615"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.URL.RawQuery = query
		known := []string{"key", "name", "refresh", "since"}
		since, err := sinceOf(r)
		if text := r.URL.Query().Get("since"); err == nil && since != nil && strings.TrimLeft(text, "0") != strings.TrimLeft(strconv.FormatUint(uint64(*since), 10), "0") {
			t.Fatalf("%q is parsed as %d", text, *since)
		}
		v, err := parameters(r, known...)
		if err != nil {
			if leasehold.KindOf(err) != leasehold.ErrInvalid {
				t.Fatal(err)
			}
			return
		}
		for name := range v {
			if !slices.Contains(known, name) {
				t.Fatalf("%q has the parameter %q", query, name)
			}
		}
	})
}

// FuzzHost: the agent accepts requests for an address, localhost, or a configured name. Another
// name could be a site that resolves to this agent (DNS rebinding).
func FuzzHost(f *testing.F) {
	for _, host := range []string{"localhost:7480", "127.0.0.1", "[::1]:80", "agent.example:1", "evil.example", "localhost.evil.example", "", "[", "127.0.0.1.evil.example", "LOCALHOST", "[::1%25evil]"} {
		f.Add(host, "application/json; charset=utf-8")
	}
	f.Fuzz(func(t *testing.T, host, contentType string) {
		if (jsonapi.Hosts{"agent.example"}).Include(host) {
			bare := strings.TrimSuffix(strings.ToLower(jsonapi.Host(host)), ".")
			if _, err := netip.ParseAddr(bare); err != nil && bare != "localhost" && !strings.HasSuffix(bare, ".localhost") && bare != "agent.example" {
				t.Fatalf("the host %q is accepted", host)
			}
		}
		// A page can send only other types without a CORS preflight request.
		if isJSON(contentType) && !strings.HasPrefix(strings.ToLower(strings.TrimSpace(contentType)), "application/json") {
			t.Fatalf("%q is accepted as JSON", contentType)
		}
	})
}
