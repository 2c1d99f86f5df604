package jsonhttp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// TestErrorsTravel: the kind and message of a server's error reach the caller.
func TestErrorsTravel(t *testing.T) {
	for kind, wanted := range map[leasehold.Kind]struct {
		status int
		kind   leasehold.Kind
	}{
		leasehold.ErrInvalid:       {http.StatusBadRequest, leasehold.ErrInvalid},
		leasehold.ErrNotFound:      {http.StatusNotFound, leasehold.ErrNotFound},
		leasehold.ErrExists:        {http.StatusConflict, leasehold.ErrExists},
		leasehold.ErrStale:         {http.StatusPreconditionFailed, leasehold.ErrStale},
		leasehold.ErrNotOwner:      {http.StatusMisdirectedRequest, leasehold.ErrNotOwner},
		leasehold.ErrLimit:         {http.StatusServiceUnavailable, leasehold.ErrLimit},
		leasehold.ErrUnavailable:   {http.StatusServiceUnavailable, leasehold.ErrIndeterminate},
		leasehold.ErrIndeterminate: {http.StatusServiceUnavailable, leasehold.ErrIndeterminate},
	} {
		mux := jsonhttp.NewMux(nil, 0)
		jsonhttp.Handle(mux, "GET /do/{name}", func(*jsonhttp.Request, jsonhttp.None) (string, error) {
			return "", leasehold.Errorf("do", kind, "it", "because")
		})
		server := httptest.NewServer(mux)
		api := jsonhttp.Client{HTTP: server.Client(), URL: server.URL}
		err := api.Do(t.Context(), http.MethodGet, "/do/it", nil)
		server.Close()
		if leasehold.KindOf(err) != wanted.kind || !strings.Contains(err.Error(), "because") || !strings.Contains(err.Error(), http.StatusText(wanted.status)) {
			t.Errorf("%v: the caller has %v, want %v with status %d", kind, err, wanted.kind, wanted.status)
		}
	}
}

type echo struct{ Name, Path, Body string }

func TestCall(t *testing.T) {
	mux := jsonhttp.NewMux(nil, 10)
	jsonhttp.Handle(mux, "PUT /do/{name}", func(r *jsonhttp.Request, body []byte) (echo, error) {
		return echo{r.Name, r.URL.EscapedPath(), string(body)}, nil
	})
	jsonhttp.Handle(mux, "DELETE /do/{name}", func(*jsonhttp.Request, jsonhttp.None) (none jsonhttp.None, err error) { return none, nil })
	server := httptest.NewServer(mux)
	defer server.Close()
	api, path := jsonhttp.Client{HTTP: server.Client(), URL: server.URL}, jsonhttp.Path("do", "a/b .. c")
	put := func(in any) (echo, error) { return jsonhttp.Call[echo](t.Context(), api, http.MethodPut, path, in) }
	if got, err := put("hello"); err != nil || got != (echo{"a/b .. c", "/do/a%2Fb%20%2E%2E%20c", `"hello"`}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := put([]byte("raw")); err != nil || got.Body != "raw" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := api.Do(t.Context(), http.MethodDelete, path, nil); err != nil {
		t.Errorf("a response without a body: %v", err)
	}
	if _, err := put("hello world"); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("too long: %v", err)
	}
	if _, err := jsonhttp.Call[[]string](t.Context(), api, http.MethodPut, path, "hello"); !errors.Is(err, leasehold.ErrInternal) {
		t.Errorf("an unexpected response: %v", err)
	}
	if _, err := put(make(chan int)); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("an unencodable request: %v", err)
	}
	if err := api.Do(t.Context(), http.MethodPut, "/do/%ff", nil); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("an invalid name: %v", err)
	}
	server.Close()
	if _, err := put("hello"); !errors.Is(err, leasehold.ErrIndeterminate) {
		t.Errorf("a closed server: %v", err)
	} else if strings.Count(err.Error(), server.URL) != 1 {
		t.Errorf("the error repeats the URL: %v", err)
	}
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		`{"name": "a"}`:             "",
		`{"nam": "a"}`:              `unknown field "nam"`,
		`{"name": 1}`:               "cannot unmarshal number",
		`["a"]`:                     "cannot unmarshal array",
		`{"name": "a"} {}`:          "data after the JSON",
		`{"name": "a"`:              "unexpected EOF",
		``:                          "EOF",
		`{"name": "a"` + "}\n \t\n": "",
	} {
		var into struct {
			Name string `json:"name"`
		}
		err := jsonhttp.Decode([]byte(text), &into)
		if want == "" && (err != nil || into.Name != "a") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
