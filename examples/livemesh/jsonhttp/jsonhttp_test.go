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

// What a server's error is, the caller's is, and it says why.
func TestErrorsTravel(t *testing.T) {
	fail := func(kind leasehold.Kind) error { return leasehold.Errorf("do", kind, "it", "because") }
	for _, test := range []struct {
		err    error
		status int
		kind   leasehold.Kind
	}{
		{fail(leasehold.Invalid), http.StatusBadRequest, leasehold.Invalid},
		{fail(leasehold.NotFound), http.StatusNotFound, leasehold.NotFound},
		{fail(leasehold.Exists), http.StatusConflict, leasehold.Exists},
		{fail(leasehold.Stale), http.StatusPreconditionFailed, leasehold.Stale},
		{fail(leasehold.NotOwner), http.StatusMisdirectedRequest, leasehold.NotOwner},
		{fail(leasehold.Limit), http.StatusTooManyRequests, leasehold.Limit},
		{fail(leasehold.Unavailable), http.StatusServiceUnavailable, leasehold.Unavailable},
		{jsonhttp.WithStatus(http.StatusGone, fail(leasehold.NotFound)), http.StatusGone, leasehold.NotFound},
		{jsonhttp.WithStatus(http.StatusUnprocessableEntity, fail(leasehold.Invalid)), http.StatusUnprocessableEntity, leasehold.Invalid},
		{jsonhttp.TooLarge("it", "because"), http.StatusRequestEntityTooLarge, leasehold.Invalid},
	} {
		status := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorder := httptest.NewRecorder()
			jsonhttp.Answer(func(http.ResponseWriter, *http.Request) (any, error) { return nil, test.err })(recorder, r)
			status = recorder.Code
			w.WriteHeader(recorder.Code)
			_, _ = w.Write(recorder.Body.Bytes())
		}))
		err := jsonhttp.Call(t.Context(), server.Client(), http.MethodGet, server.URL, nil, nil)
		server.Close()
		if status != test.status || leasehold.KindOf(err) != test.kind || !strings.Contains(err.Error(), "because") {
			t.Errorf("%v: status %d, want %d; the caller has %v, of kind %v", test.err, status, test.status, err, leasehold.KindOf(err))
		}
	}
}

func TestCall(t *testing.T) {
	server := httptest.NewServer(jsonhttp.Answer(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		body, err := jsonhttp.Read(r, 10)
		if err != nil || len(body) == 0 {
			return nil, err
		}
		return map[string]string{"path": r.URL.EscapedPath(), "body": string(body)}, nil
	}))
	defer server.Close()
	var out map[string]string
	url := jsonhttp.Path(server.URL, "a/b", "..", "c d")
	if err := jsonhttp.Call(t.Context(), server.Client(), http.MethodPut, url, "hello", &out); err != nil {
		t.Fatal(err)
	}
	if out["path"] != "/a%2Fb/%2E%2E/c%20d" || out["body"] != `"hello"` {
		t.Errorf("%v", out)
	}
	if err := jsonhttp.Call(t.Context(), server.Client(), http.MethodPut, url, nil, nil); err != nil {
		t.Errorf("an answer without a body: %v", err)
	}
	if err := jsonhttp.Call(t.Context(), server.Client(), http.MethodPut, url, "hello world", &out); !errors.Is(err, leasehold.Invalid) {
		t.Errorf("too long: %v", err)
	}
	var wrong []string
	if err := jsonhttp.Call(t.Context(), server.Client(), http.MethodPut, url, "hello", &wrong); !errors.Is(err, leasehold.Internal) {
		t.Errorf("an answer that is something else: %v", err)
	}
	if err := jsonhttp.Call(t.Context(), server.Client(), http.MethodPut, url, make(chan int), nil); !errors.Is(err, leasehold.Invalid) {
		t.Errorf("what is not JSON: %v", err)
	}
	server.Close()
	if err := jsonhttp.Call(t.Context(), server.Client(), http.MethodPut, url, "hello", &out); !errors.Is(err, leasehold.Unavailable) {
		t.Errorf("a server that is gone: %v", err)
	}
}
