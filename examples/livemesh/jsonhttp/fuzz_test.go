package jsonhttp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// FuzzDecode: any input is either a value that survives encoding and decoding, or rejected with a
// JSON response.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"session":"s","address":"a","status":"x","ip":"10.0.0.1","if":"5.17"}`, `{"session":"s","if":"0.0"}`, `{"name":1}`, `{} {}`, "", "[",
		`{"session":"\ud800"}`, `{"document":"d","version":"1.2","set":{"a":{"b":[1,2]}},"removed":["x"]}`, "null", `{"session":null,"status":"\u0000"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkDecode[im.SignOn](t, data)
		checkDecode[documents.Change](t, data)
	})
}

func checkDecode[V any](t *testing.T, data []byte) {
	var v, again V
	if err := jsonhttp.Decode(data, &v); err != nil {
		w := httptest.NewRecorder()
		leasehttp.WriteError(w, leasehold.Errorf("read", leasehold.ErrInvalid, "", "%w", err))
		if w.Code != http.StatusBadRequest || !json.Valid(w.Body.Bytes()) || !utf8.Valid(w.Body.Bytes()) {
			t.Fatalf("%q is refused with %d: %s", data, w.Code, w.Body)
		}
		return
	}
	once, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	if err := jsonhttp.Decode(once, &again); err != nil {
		t.Fatalf("%q is encoded as %s: %v", data, once, err)
	}
	twice, err := json.Marshal(again)
	if err != nil || string(once) != string(twice) {
		t.Fatalf("%q is encoded as %s, and then as %s, %v", data, once, twice, err)
	}
}
