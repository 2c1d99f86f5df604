package leasehttp_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

func TestSourceName(t *testing.T) {
	const missing, ambiguous, malformed = "is missing", "repeated with different values", "programs interpret differently"
	for _, c := range []struct {
		source string
		target string
		header []string // name, value, ...
		want   string
		wrong  string // in the error
	}{
		{"header:X-User", "/", []string{"X-User", "alice"}, "alice", ""},
		{"header:x-user", "/", []string{"X-User", "alice"}, "alice", ""},
		{"header:X-User", "/", nil, "", missing},
		{"header:X-User", "/", []string{"X-User", ""}, "", missing},
		{"header:X-User", "/", []string{"X-User", "alice", "X-User", "alice"}, "alice", ""},
		{"header:X-User", "/", []string{"X-User", "alice", "X-User", "bob"}, "", ambiguous},
		{"header:Host", "/", nil, "example.com", ""},

		{"path:1", "/users/alice/inbox", nil, "users", ""},
		{"path:2", "/users/alice/inbox", nil, "alice", ""},
		{"path:3", "/users/alice/inbox", nil, "inbox", ""},
		{"path:4", "/users/alice/inbox", nil, "", missing},
		{"path:2", "/users/alice", nil, "alice", ""},
		{"path:2", "/users/", nil, "", missing},
		{"path:2", "/users/a%2Fb/inbox", nil, "a/b", ""},
		{"path:2", "/users/a%20b", nil, "a b", ""},
		{"path:2", "//alice", nil, "", missing},
		{"path:2", "/users/./alice", nil, "", malformed},
		{"path:2", "/users/..", nil, "", malformed},
		{"path:2", "/a%2Fb/%2E%2E/x", nil, "", malformed},
		{"path:3", "/users/../alice", nil, "", malformed},
		{"path:2", "/%2e/alice/bob", nil, "", malformed},
		{"path:2", "/%2e%2e/alice", nil, "", malformed},
		{"path:2", "/users/alice/../bob", nil, "", malformed},
		{"path:2", "/users/alice/%2e%2e/bob", nil, "", malformed},
		{"path:2", "/users/alice/x/.%2E", nil, "", malformed},
		{"path:2", "/users/alice%2F..%2Fbob", nil, "", malformed},
		{"path:2,query:user", "/users/alice/../bob?user=carol", nil, "", malformed},
		{"path:2", "/users/.alice/...", nil, ".alice", ""},

		{"query:user", "/?user=alice", nil, "alice", ""},
		{"query:user", "/?a=b&user=alice&c", nil, "alice", ""},
		{"query:user", "/?us%65r=a%20b+c", nil, "a b c", ""},
		{"query:user", "/?user=", nil, "", missing},
		{"query:user", "/?users=alice", nil, "", missing},
		{"query:user", "/?user=alice&user=alice", nil, "alice", ""},
		{"query:user", "/?user=alice&user=bob", nil, "", ambiguous},
		{"query:user", "/?user=alice;bob", nil, "", missing},
		{"query:user", "/?user=%zz", nil, "", missing},

		{"cookie:sid", "/", []string{"Cookie", "a=b; sid=alice"}, "alice", ""},
		{"cookie:sid", "/", []string{"Cookie", "sid=alice; sid=bob"}, "", ambiguous},
		{"cookie:sid", "/", []string{"Cookie", "sid=alice", "Cookie", "sid=alice"}, "alice", ""},
		{"cookie:sid", "/", nil, "", missing},
		{"cookie:sid", "/", []string{"Cookie", `sid=ali\ce; sid=bob`}, "", malformed},
		{"cookie:sid", "/", []string{"Cookie", `sid=bob`, "Cookie", `a=b; sid =ali\ce`}, "", malformed},
		{"cookie:sid", "/", []string{"Cookie", `sid="a;sid=bob"`}, "", malformed},
		{"cookie:sid", "/", []string{"Cookie", `sid="bob"; other=a\b`}, "bob", ""},
		{"cookie:sid,query:user", "/?user=bob", []string{"Cookie", `sid=ali\ce`}, "", malformed},

		{"header:X-User,query:user", "/?user=alice", nil, "alice", ""},
		{"header:X-User, query:user", "/?user=alice", []string{"X-User", "bob"}, "bob", ""},
		{"header:X-User,query:user", "/?user=alice", []string{"X-User", "a", "X-User", "b"}, "", ambiguous},
		{"header:X-User,query:user", "/", nil, "", missing},
	} {
		source, err := leasehttp.ParseSource(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		r := httptest.NewRequest(http.MethodGet, c.target, nil)
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Add(c.header[i], c.header[i+1])
		}
		got, err := source.Name(r)
		switch {
		case c.wrong == "" && (err != nil || got != c.want):
			t.Errorf("%s in %s %q: %q, %v; want %q", c.source, c.target, c.header, got, err, c.want)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || leasehold.KindOf(err) != leasehold.ErrInvalid):
			t.Errorf("%s in %s %q: %q, %v; want an error with %q", c.source, c.target, c.header, got, err, c.wrong)
		}
		if key, _ := source.Key(r); c.wrong == "" && key != leasehold.KeyOf(c.want) {
			t.Errorf("%s in %s: key %v", c.source, c.target, key)
		}
	}
}

func TestParseSourceErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "want header:NAME, path:NUMBER, query:NAME or cookie:NAME",
		"X-User":                         "want header:NAME",
		"headers:X-User":                 `unknown source "headers": want header:NAME`,
		"header:":                        "want the name of a header, such as X-User",
		"header:X User":                  "want the name of a header",
		"header:X-User\r\nEvil":          "want the name of a header",
		"header:leasehold-key":           "are reserved and not forwarded",
		"header:connection":              "it is for one connection",
		"header:X-Forwarded-For":         "it is for one connection",
		"path:0":                         "from 1 to 64",
		"path:65":                        "from 1 to 64",
		"path:-1":                        "from 1 to 64",
		"path:two":                       "want the number of a segment",
		"query:":                         "want the name of a parameter",
		"cookie:":                        "want the name of a cookie",
		"cookie:a=b":                     "want the name of a cookie",
		"header:X-User,":                 "want header:NAME",
		strings.Repeat("path:1,", 40):    "want 1 to 16 sources",
		"x" + strings.Repeat("y", 10000): "...",
	} {
		_, err := leasehttp.ParseSource(text)
		if err == nil || !strings.Contains(err.Error(), want) || leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%.40q: %v; want %q", text, err, want)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%.40q: the error has %d bytes", text, len(err.Error()))
		}
	}
}

func TestSourceText(t *testing.T) {
	all := leasehttp.First(leasehttp.Header("x-user"), leasehttp.PathSegment(2), leasehttp.Query("user"), leasehttp.Cookie("sid"))
	const want = "header:X-User,path:2,query:user,cookie:sid"
	if all.String() != want {
		t.Errorf("%q, want %q", all, want)
	}
	if again, err := leasehttp.ParseSource(want); err != nil || again.String() != want {
		t.Errorf("parsed again: %q, %v", again, err)
	}
}

func TestSourceFunc(t *testing.T) {
	tenant := leasehttp.Func("tenant", func(r *http.Request) (string, bool) {
		name, _, ok := strings.Cut(r.Host, ".")
		return name, ok
	})
	r := httptest.NewRequest(http.MethodGet, "http://acme.example.com/", nil)
	if name, err := tenant.Name(r); name != "acme" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	r.Host = "localhost"
	if _, err := tenant.Name(r); err == nil || !strings.Contains(err.Error(), `"tenant"`) {
		t.Errorf("without a tenant: %v", err)
	}
}

func TestConstructorsPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"header":  func() { leasehttp.Header("a b") },
		"path":    func() { leasehttp.PathSegment(0) },
		"query":   func() { leasehttp.Query("") },
		"cookie":  func() { leasehttp.Cookie("") },
		"first":   func() { leasehttp.First() },
		"zero":    func() { leasehttp.First(leasehttp.Source{}) },
		"hold":    func() { leasehttp.WithHoldBack(-1) },
		"no key":  func() { leasehttp.Middleware(nil, leasehttp.Source{}) },
		"too far": func() { leasehttp.PathSegment(65) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if err, ok := recover().(error); !ok || leasehold.KindOf(err) != leasehold.ErrInvalid {
					t.Errorf("the panic is %v", err)
				}
			}()
			f()
		})
	}
}

// A source finds every name that a client can encode. A path with a segment "." or ".." is an
// error.
func TestSourceFindsEncodedNames(t *testing.T) {
	awkward := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{".", "/", "%", "%2F", "a", " "}), 1, 6),
		func(parts []string) string { return strings.Join(parts, "") })
	names := rapid.OneOf(rapid.StringN(1, 20, 60), awkward)
	rapid.Check(t, func(t *rapid.T) {
		name := names.Draw(t, "name")
		target := "/users/" + url.PathEscape(name) + "/inbox?" + url.Values{"user": {name}, "other": {"x"}}.Encode()
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatal(err)
		}
		r := &http.Request{URL: u}
		if got, err := leasehttp.Query("user").Name(r); got != name || err != nil {
			t.Errorf("the query of %s: %q, %v", target, got, err)
		}
		parts := strings.Split(name, "/")
		dots := slices.Contains(parts, ".") || slices.Contains(parts, "..")
		switch got, err := leasehttp.PathSegment(2).Name(r); {
		case dots && leasehold.KindOf(err) != leasehold.ErrInvalid:
			t.Errorf("the path of %s: %q, %v, want an error", target, got, err)
		case !dots && (got != name || err != nil):
			t.Errorf("the path of %s: %q, %v", target, got, err)
		}
	})
}

// The source finds the same value as url.ParseQuery, which servers use.
func TestQueryAgreesWithTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"k", "%6b", "=", "&", ";", "a", "b", "+", "%", "%2", "%20"})
		query := strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "query"), "")
		values, _ := url.ParseQuery(query) // it omits invalid pairs
		var want string
		for i, v := range values["k"] {
			if i > 0 && v != want {
				want = ""
				break
			}
			want = v
		}
		got, err := leasehttp.Query("k").Name(&http.Request{URL: &url.URL{RawQuery: query}})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", query, got, err, want)
		}
	})
}

// A request without a URL has no key and causes no panic.
func TestSourceWithoutURL(t *testing.T) {
	for _, text := range []string{"path:1", "query:user", "header:Host", "cookie:sid"} {
		source, err := leasehttp.ParseSource(text)
		if err != nil {
			t.Fatal(err)
		}
		if name, err := source.Name(&http.Request{}); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%s: %q, %v", text, name, err)
		}
	}
}
