package jsonapi_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

func TestRead(t *testing.T) {
	const most = 100
	for _, test := range []struct{ body, want string }{
		{`{"a":1}`, ""},
		{" {}\n", ""},
		{"", "want one JSON object"},
		{"[]", "want one JSON object"},
		{`{"a":1}{}`, "more than one JSON object"},
		{`{"b":1}`, `unknown field "b"`},
		{"{\"a\":\"\xff\"}", "no valid UTF-8"},
		{strings.Repeat(" ", most+1), "cannot be read"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(test.body))
		var into struct{ A int }
		err := jsonapi.Read(httptest.NewRecorder(), r, most, &into)
		if test.want == "" && err != nil || test.want != "" && (leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%.20q: %v, want %q", test.body, err, test.want)
		}
		var long *http.MaxBytesError
		if errors.As(err, &long) != (len(test.body) > most) {
			t.Errorf("%.20q: %v", test.body, err)
		}
	}
}

func TestHosts(t *testing.T) {
	hosts := jsonapi.Hosts{"Agent.internal"}
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:7404": true, "a.localhost.": true, "127.0.0.1:1": true, "[::1]:1": true, "[::1]": true, "::1": true,
		"agent.internal:7404": true, "AGENT.internal.": true,
		"": false, "evil.example:7404": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "[": false, "xagent.internal": false,
	} {
		if got := hosts.Include(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}
