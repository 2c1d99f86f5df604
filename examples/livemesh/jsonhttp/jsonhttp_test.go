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
	fail := func(kind leasehold.Kind) error { return leasehold.Errorf("do", kind, "it", "because") }
	for _, test := range []struct {
		err    error
		status int
		kind   leasehold.Kind
	}{
		{fail(leasehold.ErrInvalid), http.StatusBadRequest, leasehold.ErrInvalid},
		{fail(leasehold.ErrNotFound), http.StatusNotFound, leasehold.ErrNotFound},
		{fail(leasehold.ErrExists), http.StatusConflict, leasehold.ErrExists},
		{fail(leasehold.ErrStale), http.StatusPreconditionFailed, leasehold.ErrStale},
		{fail(leasehold.ErrNotOwner), http.StatusMisdirectedRequest, leasehold.ErrNotOwner},
		{fail(leasehold.ErrLimit), http.StatusTooManyRequests, leasehold.ErrLimit},
		{fail(leasehold.ErrIndeterminate), http.StatusServiceUnavailable, leasehold.ErrIndeterminate},
		{jsonhttp.WithStatus(http.StatusGone, fail(leasehold.ErrNotFound)), http.StatusGone, leasehold.ErrNotFound},
		{jsonhttp.WithStatus(http.StatusUnprocessableEntity, fail(leasehold.ErrInvalid)), http.StatusUnprocessableEntity, leasehold.ErrInvalid},
		{jsonhttp.TooLarge("it", "because"), http.StatusRequestEntityTooLarge, leasehold.ErrInvalid},
	} {
		status, body := 0, ""
		mux := jsonhttp.NewMux(nil)
		mux.Handle("GET /do/{name}", func(*jsonhttp.Request) (any, error) { return nil, test.err })
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorder := httptest.NewRecorder()
			mux.ServeHTTP(recorder, r)
			status, body = recorder.Code, recorder.Body.String()
			w.WriteHeader(recorder.Code)
			_, _ = w.Write(recorder.Body.Bytes())
		}))
		api := jsonhttp.Client{HTTP: server.Client(), URL: server.URL}
		err := api.Do(t.Context(), http.MethodGet, "/do/it", nil, nil)
		server.Close()
		if kind, _, _ := strings.Cut(strings.TrimPrefix(body, `{"kind":"`), `"`); kind == "" || strings.Contains(kind, " ") {
			t.Errorf("%v: the kind is %q, want one word, as in package leasehttp", test.err, kind)
		}
		if status != test.status || leasehold.KindOf(err) != test.kind || !strings.Contains(err.Error(), "because") {
			t.Errorf("%v: status %d, want %d; the caller has %v, of kind %v", test.err, status, test.status, err, leasehold.KindOf(err))
		}
	}
}

func TestCall(t *testing.T) {
	mux := jsonhttp.NewMux(nil)
	mux.Handle("PUT /do/{name}", func(r *jsonhttp.Request) (any, error) {
		body, err := r.Read(10)
		if err != nil || len(body) == 0 {
			return nil, err
		}
		return map[string]string{"name": r.Name, "path": r.URL.EscapedPath(), "body": string(body)}, nil
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	api, path := jsonhttp.Client{HTTP: server.Client(), URL: server.URL}, jsonhttp.Path("do", "a/b .. c")
	put := func(in, out any) error { return api.Do(t.Context(), http.MethodPut, path, in, out) }
	var out map[string]string
	if err := put("hello", &out); err != nil {
		t.Fatal(err)
	}
	if out["name"] != "a/b .. c" || out["path"] != "/do/a%2Fb%20%2E%2E%20c" || out["body"] != `"hello"` {
		t.Errorf("%v", out)
	}
	if err := put([]byte("raw"), &out); err != nil || out["body"] != "raw" {
		t.Errorf("%v, %v", out, err)
	}
	if err := put(nil, nil); err != nil {
		t.Errorf("a response without a body: %v", err)
	}
	if err := put("hello world", &out); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("too long: %v", err)
	}
	if err := put("hello", new([]string)); !errors.Is(err, leasehold.ErrInternal) {
		t.Errorf("an unexpected response: %v", err)
	}
	if err := put(make(chan int), nil); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("an unencodable request: %v", err)
	}
	if err := api.Do(t.Context(), http.MethodPut, "/do/%ff", nil, nil); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("an invalid name: %v", err)
	}
	server.Close()
	if err := put("hello", &out); !errors.Is(err, leasehold.ErrIndeterminate) {
		t.Errorf("a closed server: %v", err)
	} else if strings.Count(err.Error(), server.URL) != 1 {
		t.Errorf("the error repeats the URL: %v", err)
	}
}

// TestRoutes: unknown paths and methods have JSON errors.
func TestRoutes(t *testing.T) {
	mux := jsonhttp.NewMux(nil)
	mux.Handle("GET /known/{name}", func(*jsonhttp.Request) (any, error) { return "fine", nil })
	for _, test := range []struct {
		method, path string
		status       int
		want         string
	}{
		{http.MethodGet, "/known/x", http.StatusOK, `"fine"`},
		{http.MethodGet, "/unknown", http.StatusNotFound, `{"kind":"not-found","message":"GET \"/unknown\": there is no such path"}`},
		{http.MethodPut, "/known/x", http.StatusMethodNotAllowed, `{"kind":"invalid","message":"PUT \"/known/x\": unsupported method: want one of GET, HEAD"}`},
		{http.MethodGet, "/a/../known/x", http.StatusTemporaryRedirect, `href="/known/x"`},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(test.method, test.path, http.NoBody))
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s %s: %d %s, want %d with %s", test.method, test.path, w.Code, w.Body, test.status, test.want)
		}
	}
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		`{"name": "a"}`:             "",
		`{"nam": "a"}`:              `unknown field "nam"`,
		`{"name": 1}`:               "name cannot be a JSON number",
		`["a"]`:                     "this is a JSON array",
		`{"name": "a"} {}`:          "data after the JSON",
		`{"name": "a"`:              "unexpected EOF",
		``:                          "the body is empty",
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
