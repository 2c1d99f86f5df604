package demo

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// startLines has a presence service that knows some users, each with a number of
// its own, and lines to it.
func startLines(t *testing.T, count int) (*network, *presence, *lines, []leasehold.Key) {
	t.Helper()
	p, _, _ := startPresence()
	keys := newUsers(count).keys()
	for i, key := range keys {
		if _, err := p.set(key, uint64(i+1), "here"); err != nil {
			t.Fatal(err)
		}
	}
	n := &network{}
	ls := newLines(t.Context(), n.dial)
	t.Cleanup(ls.close)
	return n, p, ls, keys
}

func ask(t *testing.T, ls *lines, key leasehold.Key) (uint64, error) {
	t.Helper()
	l, err := ls.to("server")
	if err != nil {
		return 0, err
	}
	return l.ask(t.Context(), key)
}

// TestALineServesMany who ask at once, each about a few keys. It is one connection.
func TestALineServesMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = maxProbed
		n, p, ls, keys := startLines(t, count)
		n.run(t, "server", p)
		var asking sync.WaitGroup
		for i := range count {
			size := min(1+i%7, count-i)
			asking.Add(1)
			go func() {
				l, err := ls.to("server")
				if err == nil {
					err = l.send(keys[i:i+size], func(words []byte, err error) {
						defer asking.Done()
						if err != nil || len(words) != size*wordSize {
							t.Errorf("%d bytes, %v", len(words), err)
							return
						}
						for j := range size {
							if got := wordAt(words, j); got != uint64(i+j+1) {
								t.Errorf("key %d: got %d", i+j, got)
							}
						}
					})
				}
				if err != nil {
					t.Error(err)
				}
			}()
		}
		asking.Wait()
		if got := len(p.lines.conns); got != 1 {
			t.Errorf("%d connections", got)
		}
		p.leases.(*fakeLeases).generation = 0
		if got, err := ask(t, ls, keys[0]); err != nil || got != declined {
			t.Errorf("not the owner: %d, %v", got, err)
		}
	})
}

// TestALineIsBegunAgain after its server has gone and another has come. Between
// the two callers hear at once that there is none.
func TestALineIsBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, p, ls, keys := startLines(t, 1)
		for range 3 {
			stop := n.run(t, "server", p)
			if got, err := ask(t, ls, keys[0]); err != nil || got != 1 {
				t.Errorf("got %d, %v", got, err)
			}
			stop()
			p.lines.closed = false // the next one is not this one
			synctest.Wait()
			begin := time.Now()
			if _, err := ask(t, ls, keys[0]); !errors.Is(err, leasehold.Unavailable) || time.Since(begin) > 0 {
				t.Errorf("without a server: %v after %v", err, time.Since(begin))
			}
		}
		if synctest.Wait(); len(ls.open) > 0 || len(p.lines.conns) > 0 {
			t.Errorf("%d lines are left, and %d connections", len(ls.open), len(p.lines.conns))
		}
	})
}

// answering returns a server that has a line, and answers every question in its
// own way.
func answering(answer string) func(net.Conn) {
	return func(conn net.Conn) {
		defer conn.Close() //nolint:errcheck // there is nothing left to be said
		in := newFrameReader(conn)
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		_, _ = io.WriteString(conn, switching)
		for {
			size, err := awaitFrame(in)
			if err == nil {
				_, err = takeFrame(in, size)
			}
			if err == nil && answer != "" {
				_, err = io.WriteString(conn, answer)
			}
			if err != nil {
				return
			}
		}
	}
}

// TestABadServerIsHungUpOn: whatever it does, callers get an error after which
// they may try again, and soon.
func TestABadServerIsHungUpOn(t *testing.T) {
	silent := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	page := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = http.ReadRequest(newFrameReader(conn))
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}
	for _, test := range []struct {
		name  string
		serve func(net.Conn)
		after time.Duration
		want  string
	}{
		{"it is not there", nil, 0, "connection refused"},
		{"it goes", func(conn net.Conn) { _ = conn.Close() }, 0, "closed"},
		{"it says nothing", silent, attemptPatience, "closed"},
		{"it has no lines", page("HTTP/1.1 404 Not Found\r\n\r\n"), 0, "404 Not Found"},
		{"it speaks something else", page("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"), 0, "101"},
		{"it speaks first", page(switching + "hello"), 0, "101"},
		{"it never ends", page("HTTP/1.1 200 OK\r\n" + strings.Repeat("x: y\r\n", maxBodySize)), 0, "malformed"},
		{"no answer", answering(""), attemptPatience, "timeout"},
		{"half an answer", answering(string(frameOf(1)[:5])), attemptPatience, "timeout"},
		{"no words", answering(string(frameOf())), 0, "a frame of 0 words"},
		{"too many words", answering("\xff\xff"), 0, "a frame of 65535 words"},
		{"more words than keys", answering(string(frameOf(1, 2))), 0, "nobody has asked"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, _, ls, keys := startLines(t, 1)
				n.listen("server", test.serve)
				begin := time.Now()
				_, err := ask(t, ls, keys[0])
				if !errors.Is(err, leasehold.Unavailable) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				if took := time.Since(begin); took != test.after {
					t.Errorf("after %v, want %v", took, test.after)
				}
				if synctest.Wait(); len(ls.open) > 0 {
					t.Error("the line is still there")
				}
			})
		})
	}
}

// TestAnswersThatNobodyWantsEndALine, though the ones before were good.
func TestAnswersThatNobodyWantsEndALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _, ls, keys := startLines(t, 1)
		n.listen("server", answering(string(frameOf(5))+string(frameOf(5))))
		if got, err := ask(t, ls, keys[0]); err != nil || got != 5 {
			t.Errorf("got %d, %v", got, err)
		}
		if synctest.Wait(); len(ls.open) > 0 {
			t.Error("the line is still there")
		}
	})
}

// TestEachQuestionHasItsTime: a server that has answered for an hour must go on.
func TestEachQuestionHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _, ls, keys := startLines(t, 1)
		hour := time.Now().Add(time.Hour)
		n.listen("server", func(conn net.Conn) {
			caller, server := net.Pipe()
			go answering(string(frameOf(5)))(server)
			go func() { _, _ = io.Copy(caller, conn); _ = caller.Close() }()
			for b := make([]byte, maxFrameSize); ; {
				size, err := caller.Read(b)
				if err != nil {
					return
				}
				if time.Now().Before(hour) {
					_, _ = conn.Write(b[:size])
				}
			}
		})
		for range 60 {
			if got, err := ask(t, ls, keys[0]); err != nil || got != 5 {
				t.Fatalf("got %d, %v", got, err)
			}
			pause(t.Context(), time.Minute)
		}
		if _, err := ask(t, ls, keys[0]); !errors.Is(err, leasehold.Unavailable) || time.Since(hour) != attemptPatience {
			t.Errorf("got %v after %v", err, time.Since(hour))
		}
	})
}

// TestLinesAreBounded, and so is who waits on one.
func TestLinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _, ls, keys := startLines(t, 1)
		n.listen("server", answering(""))
		l, err := ls.to("server")
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for range maxWaiters {
			if err := l.send(keys, func(_ []byte, err error) {
				if errors.Is(err, leasehold.Unavailable) {
					failed++
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.send(keys, func([]byte, error) { t.Error("told of what was not sent") }); !errors.Is(err, leasehold.Unavailable) {
			t.Errorf("one too many waits: %v", err)
		}
		for i := range maxLines - 1 {
			addr := "server" + strings.Repeat("x", i+1)
			n.listen(addr, answering(""))
			if _, err := ls.to(addr); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ls.to("one more"); !errors.Is(err, leasehold.Unavailable) {
			t.Errorf("one line too many: %v", err)
		}
		ls.close()
		if failed != maxWaiters {
			t.Errorf("%d of %d who waited were told", failed, maxWaiters)
		}
		if _, err := ls.to("server"); !errors.Is(err, leasehold.Unavailable) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestACallerDoesNotWaitForALine once its own context has ended.
func TestACallerDoesNotWaitForALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _, ls, keys := startLines(t, 1)
		n.listen("server", answering(""))
		l, err := ls.to("server")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := l.ask(ctx, keys[0]); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// TestLinesOverTCP: a server takes lines up as it does requests.
func TestLinesOverTCP(t *testing.T) {
	_, p, _, keys := startLines(t, 3)
	server := httptest.NewServer(p.handler())
	defer server.Close()
	defer p.lines.close()
	ls := newLines(t.Context(), dialTCP)
	defer ls.close()
	for i, key := range keys {
		l, err := ls.to(server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := l.ask(t.Context(), key); err != nil || got != uint64(i+1) {
			t.Errorf("got %d, %v", got, err)
		}
	}
}
