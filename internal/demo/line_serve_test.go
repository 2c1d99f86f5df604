package demo

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestBadCallersAreHungUpOn, and nobody else is.
func TestBadCallersAreHungUpOn(t *testing.T) {
	for _, test := range []struct {
		name  string
		sends []byte
		after time.Duration
	}{
		{"no keys", frameOf(), 0},
		{"too many keys", []byte{0xff, 0xff}, 0},
		{"half a question", frameOf(1)[:5], frameTime},
		{"garbage", []byte("GET / HTTP/1.1\r\n\r\n"), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, p, ls, keys := startLines(t, 1)
				n.run(t, "server", p)
				if _, err := ask(t, ls, keys[0]); err != nil {
					t.Fatal(err)
				}
				conn := rawLine(t, ls)
				go func() { _, _ = conn.Write(test.sends) }() // it may not take all of it
				begin := time.Now()
				if text, err := io.ReadAll(conn); len(text) > 0 || err != nil {
					t.Errorf("it answered %x, %v", text, err)
				}
				if took := time.Since(begin); took != test.after {
					t.Errorf("after %v, want %v", took, test.after)
				}
				if got, err := ask(t, ls, keys[0]); err != nil || got != 1 {
					t.Errorf("another caller got %d, %v", got, err)
				}
			})
		})
	}
}

// rawLine returns a connection on which a server expects questions.
func rawLine(t *testing.T, ls *lines) net.Conn {
	t.Helper()
	conn, err := ls.connect("server")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestACallerThatTakesNoAnswersIsHungUpOn.
func TestACallerThatTakesNoAnswersIsHungUpOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, p, ls, keys := startLines(t, 1)
		n.run(t, "server", p)
		conn := rawLine(t, ls)
		if _, err := conn.Write(frameOf(uint64(keys[0]))); err != nil {
			t.Fatal(err)
		}
		pause(t.Context(), frameTime)
		if synctest.Wait(); len(p.lines.conns) > 0 {
			t.Error("it is still there")
		}
	})
}

// TestASilentCallerStays: one that asks nothing for an hour, and then asks.
func TestASilentCallerStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, p, ls, keys := startLines(t, 1)
		n.run(t, "server", p)
		conn := rawLine(t, ls)
		question, want := frameOf(uint64(keys[0])), frameOf(1)
		for _, part := range [][]byte{question, question[:3], question[3:], question} {
			if _, err := conn.Write(part); err != nil {
				t.Fatal(err)
			}
			if len(part) == 3 {
				pause(t.Context(), frameTime/2)
				continue
			}
			got := make([]byte, len(want))
			if _, err := io.ReadFull(conn, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			pause(t.Context(), time.Hour)
		}
	})
}

// TestAServerHasSoManyLines, and none when it ends.
func TestAServerHasSoManyLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, p, ls, _ := startLines(t, 1)
		stop := n.run(t, "server", p)
		var conns []net.Conn
		for range maxLines {
			conns = append(conns, rawLine(t, ls))
		}
		if _, err := ls.connect("server"); err == nil {
			t.Error("one line too many")
		}
		_ = conns[0].Close()
		synctest.Wait()
		rawLine(t, ls)
		stop()
		for _, conn := range conns[1:] {
			if _, err := io.ReadAll(conn); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestALineMustBeAskedFor(t *testing.T) {
	p, _, _ := startPresence()
	w := httptest.NewRecorder()
	p.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/presence", nil))
	if w.Code != http.StatusUpgradeRequired || w.Header().Get("Upgrade") != lineProtocol || !strings.Contains(w.Body.String(), "upgrade") {
		t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
	}
}
