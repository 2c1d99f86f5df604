package leasehttp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/owner"
)

// holder is an owner of all keys, whose lease can be lost or suspended.
type holder struct {
	lost      atomic.Bool
	suspended atomic.Bool
	awaited   atomic.Int32
}

func (h *holder) has() bool { return !h.lost.Load() && !h.suspended.Load() }

func (h *holder) Await(context.Context, leasehold.Key) error {
	h.awaited.Add(1)
	if !h.has() {
		return leasehold.ErrNotOwner
	}
	return nil
}

func (h *holder) Check(key leasehold.Key) (owner.Lease, bool) {
	return owner.Lease{Key: key, Lease: leasehold.Lease{Range: leasehold.All, Generation: 7}}, h.has()
}

func (h *holder) Held(l owner.Lease) bool { return l.Generation == 7 && h.has() }

func (h *holder) Suspended(leasehold.Key) bool { return h.suspended.Load() && !h.lost.Load() }

// guarded calls a handler through the middleware on the current goroutine.
func guarded(h *holder, r *http.Request, handler http.HandlerFunc, options ...leasehttp.MiddlewareOption) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	leasehttp.Middleware(h, user, options...)(handler).ServeHTTP(w, r)
	return w
}

func forAlice() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body"))
	r.Header.Set("X-User", alice)
	return r
}

// kindOf returns the kind in the body of an error response.
func kindOf(t *testing.T, body string) string {
	t.Helper()
	var explanation struct{ Kind, Message string }
	if err := json.Unmarshal([]byte(body), &explanation); err != nil || explanation.Message == "" {
		t.Errorf("%q: want JSON with a kind and a message", body)
	}
	return explanation.Kind
}

func TestMiddlewareServes(t *testing.T) {
	h := &holder{}
	var lease owner.Lease
	w := guarded(h, forAlice(), func(w http.ResponseWriter, r *http.Request) {
		lease, _ = leasehttp.Lease(r.Context())
		w.Header().Set("X-Own", "1")
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("X-Late", "1")
		_, _ = io.WriteString(w, "made")
	})
	if w.Code != http.StatusCreated || w.Body.String() != "made" || w.Result().Header.Get("X-Own") != "1" {
		t.Errorf("%d %v %q", w.Code, w.Result().Header, w.Body)
	}
	if w.Result().Header.Get("X-Late") != "" {
		t.Error("a header that was set after WriteHeader was sent")
	}
	if lease.Generation != 7 || lease.Key != leasehold.KeyOf(alice) || h.awaited.Load() != 1 {
		t.Errorf("lease %v, awaited %d times", lease, h.awaited.Load())
	}
	if w := guarded(h, forAlice(), func(http.ResponseWriter, *http.Request) {}); w.Code != http.StatusOK || w.Body.Len() != 0 {
		t.Errorf("a handler that writes nothing: %d %q", w.Code, w.Body)
	}
	if _, ok := leasehttp.Lease(t.Context()); ok {
		t.Error("the context has a lease without the middleware")
	}
}

func TestMiddlewareRejects(t *testing.T) {
	never := func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") }
	t.Run("not the owner", func(t *testing.T) {
		h := &holder{}
		h.lost.Store(true)
		w := guarded(h, forAlice(), never)
		if w.Code != http.StatusMisdirectedRequest || w.Header().Get(leasehttp.HeaderRefused) != leasehttp.RefusedNotOwner || kindOf(t, w.Body.String()) != "not-owner" {
			t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
		}
	})
	t.Run("no key", func(t *testing.T) {
		r := forAlice()
		r.Header.Del("X-User")
		w := guarded(&holder{}, r, never)
		if w.Code != http.StatusBadRequest || kindOf(t, w.Body.String()) != "invalid" || !strings.Contains(w.Body.String(), "header:X-User") {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
	t.Run("routed by another key", func(t *testing.T) {
		r := forAlice()
		r.Header.Set(leasehttp.HeaderKey, leasehold.KeyOf("bob").String())
		w := guarded(&holder{}, r, never)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "configure the same source") {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
}

func TestMiddlewareReplacesResponsesWithoutLease(t *testing.T) {
	for name, handler := range map[string]func(h *holder, w http.ResponseWriter){
		"silent":              func(h *holder, _ http.ResponseWriter) { h.lost.Store(true) },
		"the write succeeded": func(h *holder, w http.ResponseWriter) { _, _ = io.WriteString(w, "result"); h.lost.Store(true) },
		"header": func(h *holder, w http.ResponseWriter) {
			w.Header().Set("X-Own", "1")
			w.WriteHeader(http.StatusCreated)
			h.lost.Store(true)
		},
		"before the first flush": func(h *holder, w http.ResponseWriter) {
			_, _ = io.WriteString(w, "result")
			h.lost.Store(true)
			if err := http.NewResponseController(w).Flush(); leasehold.KindOf(err) != leasehold.ErrIndeterminate {
				t.Errorf("flush: %v", err)
			}
			if _, err := io.WriteString(w, "more"); leasehold.KindOf(err) != leasehold.ErrIndeterminate {
				t.Errorf("write: %v", err)
			}
		},
		"before too much": func(h *holder, w http.ResponseWriter) {
			h.lost.Store(true)
			if _, err := w.Write(make([]byte, leasehttp.DefaultHoldBack+1)); err == nil {
				t.Error("the write succeeded")
			}
		},
		"before a hijack": func(h *holder, w http.ResponseWriter) {
			h.lost.Store(true)
			if _, _, err := http.NewResponseController(w).Hijack(); leasehold.KindOf(err) != leasehold.ErrIndeterminate {
				t.Errorf("hijack: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &holder{}
			w := httptest.NewRecorder()
			w.Header().Set("X-Outer", "1") // of an outer middleware
			leasehttp.Middleware(h, user)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { handler(h, w) })).ServeHTTP(w, forAlice())
			if w.Code != http.StatusServiceUnavailable || w.Header().Get(leasehttp.HeaderRefused) != leasehttp.RefusedLost || kindOf(t, w.Body.String()) != "indeterminate" {
				t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
			}
			if w.Header().Get("X-Own") != "" || w.Header().Get("X-Outer") != "1" {
				t.Errorf("%v", w.Header())
			}
		})
	}
}

// A rejection by the handler is sent even without the lease.
func TestMiddlewareSendsRejectionsOfTheHandler(t *testing.T) {
	h := &holder{}
	w := guarded(h, forAlice(), func(w http.ResponseWriter, _ *http.Request) {
		h.lost.Store(true)
		leasehttp.WriteError(w, leasehold.ErrNotOwner)
	})
	if w.Code != http.StatusMisdirectedRequest || w.Header().Get(leasehttp.HeaderRefused) != leasehttp.RefusedNotOwner {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// A partly sent response is cut off when the lease ends.
func TestMiddlewareCutsOffPartialResponses(t *testing.T) {
	for name, handler := range map[string]func(h *holder, w http.ResponseWriter){
		"flushed": func(h *holder, w http.ResponseWriter) {
			_, _ = io.WriteString(w, "part")
			_ = http.NewResponseController(w).Flush()
			h.lost.Store(true)
		},
		"and written on": func(h *holder, w http.ResponseWriter) {
			_, _ = io.WriteString(w, "part")
			_ = http.NewResponseController(w).Flush()
			h.lost.Store(true)
			if _, err := io.WriteString(w, "more"); leasehold.KindOf(err) != leasehold.ErrIndeterminate {
				t.Errorf("write: %v", err)
			}
			h.lost.Store(false) // not checked again
		},
		"and flushed on": func(h *holder, w http.ResponseWriter) {
			_, _ = io.WriteString(w, "part")
			h.lost.Store(true)
			if err := http.NewResponseController(w).Flush(); leasehold.KindOf(err) != leasehold.ErrIndeterminate {
				t.Errorf("flush: %v", err)
			}
			h.lost.Store(false) // not checked again
		},
		"long": func(h *holder, w http.ResponseWriter) {
			_, _ = io.WriteString(w, "pa")
			_, _ = io.WriteString(w, "rt")
			h.lost.Store(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &holder{}
			w := httptest.NewRecorder()
			defer func() {
				if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
					t.Errorf("the panic is %v", err)
				}
				if w.Body.String() != "part" {
					t.Errorf("%q", w.Body)
				}
			}()
			leasehttp.Middleware(h, user, leasehttp.WithHoldBack(3))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				handler(h, w)
			})).ServeHTTP(w, forAlice())
		})
	}
}

func TestMiddlewareSendsInformationalResponses(t *testing.T) {
	var codes []int
	w := informed{httptest.NewRecorder(), &codes}
	leasehttp.Middleware(&holder{}, user)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusTeapot) // after the final status
	})).ServeHTTP(w, forAlice())
	if fmt.Sprint(codes) != "[103 202]" {
		t.Errorf("%v", codes)
	}
}

type informed struct {
	http.ResponseWriter
	codes *[]int
}

func (i informed) WriteHeader(code int) { *i.codes = append(*i.codes, code) }

// When the lease ends, the context of a long request is cancelled, and a hijacked connection is
// closed.
func TestLongRequestsEndWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &holder{}
		time.AfterFunc(10*time.Second, func() { h.lost.Store(true) })
		began := time.Now()
		w := guarded(h, forAlice(), func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			if cause := context.Cause(r.Context()); leasehold.KindOf(cause) != leasehold.ErrIndeterminate {
				t.Errorf("the cause is %v", cause)
			}
		})
		if took := time.Since(began); took < 10*time.Second || took > 12*time.Second || w.Code != http.StatusServiceUnavailable {
			t.Errorf("%d after %v", w.Code, took)
		}

		h.lost.Store(false)
		near, far := net.Pipe()
		defer near.Close() //nolint:errcheck // the other end is closed
		var given net.Conn
		leasehttp.Middleware(h, user)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			given, _, _ = http.NewResponseController(w).Hijack()
		})).ServeHTTP(hijackable{httptest.NewRecorder(), far}, forAlice())
		go func() { _, _ = io.WriteString(given, "x") }()
		if _, err := io.ReadFull(near, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // the handler has returned, the connection is open
		h.lost.Store(true)
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection: %v", err)
		}
		if _, err := given.Write([]byte("x")); err == nil {
			t.Error("the handler can write to the closed connection")
		}
	})
}

// Writes to a hijacked connection fail without the lease, even before the periodic check.
func TestHijackedWritesCheckTheLease(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close() //nolint:errcheck // the test has ended
	h := &holder{}
	got := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(near)
		got <- string(all)
	}()
	leasehttp.Middleware(h, user)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // the test has ended
		_, _ = io.WriteString(conn, "one ")
		_, _ = buffered.WriteString("two")
		if err := buffered.Flush(); err != nil {
			t.Errorf("with the lease: %v", err)
		}
		h.lost.Store(true)
		if _, err := io.WriteString(conn, "three"); leasehold.KindOf(err) != leasehold.ErrIndeterminate {
			t.Errorf("without the lease: %v", err)
		}
		_, _ = buffered.WriteString("four")
		if err := buffered.Flush(); leasehold.KindOf(err) != leasehold.ErrIndeterminate {
			t.Errorf("buffered, without the lease: %v", err)
		}
	})).ServeHTTP(hijackable{httptest.NewRecorder(), far}, forAlice())
	if all := <-got; all != "one two" {
		t.Errorf("%q was written", all)
	}
}

type hijackable struct {
	http.ResponseWriter
	conn net.Conn
}

func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}

func TestWriteError(t *testing.T) {
	if w := httptest.NewRecorder(); leasehttp.WriteError(w, nil) || w.Body.Len() > 0 || len(w.Header()) > 0 {
		t.Errorf("without an error: %v %q", w.Header(), w.Body)
	}
	for kind, want := range map[leasehold.Kind]int{
		leasehold.ErrNotOwner: 421, leasehold.ErrIndeterminate: 503, leasehold.ErrUnavailable: 503, leasehold.ErrInvalid: 400, leasehold.ErrNotFound: 404,
		leasehold.ErrExists: 409, leasehold.ErrStale: 412, leasehold.ErrLimit: 503, leasehold.Other: 500, leasehold.ErrInternal: 500,
	} {
		w := httptest.NewRecorder()
		if err := leasehold.Errorf("op", kind, "subject", "secret"); !leasehttp.WriteError(w, err) {
			t.Errorf("%v: no response", kind)
		}
		if w.Code != want {
			t.Errorf("%v: %d, want %d", kind, w.Code, want)
		}
		if open := strings.Contains(w.Body.String(), "secret"); open != (want != 500) {
			t.Errorf("%v: the body is %q", kind, w.Body)
		}
		refused := w.Header().Get(leasehttp.HeaderRefused)
		if (refused != "") != (kind == leasehold.ErrNotOwner || kind == leasehold.ErrIndeterminate) {
			t.Errorf("%v: refused %q", kind, refused)
		}
	}
}
