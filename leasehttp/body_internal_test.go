package leasehttp

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"pgregory.net/rapid"
)

// closing tells whether it was closed, and how often.
type closing struct {
	io.Reader
	times int
}

func (c *closing) Close() error { c.times++; return nil }

func bodyOf(from io.ReadCloser, most int) *body { return newBody(&http.Request{Body: from}, most) }

func next(t *testing.T, b *body) io.ReadCloser {
	t.Helper()
	r, err := b.next()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBodySentAgain: however much of it an attempt has read, the next one gets all
// of it, as long as it is kept.
func TestBodySentAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 100
		text := strings.Repeat("abcdefgh", 20)[:rapid.IntRange(0, 160).Draw(t, "length")]
		from := &closing{Reader: iotest.HalfReader(strings.NewReader(text))}
		b := bodyOf(from, most)
		read := 0
		for range rapid.IntRange(0, 4).Draw(t, "attempts") {
			attempt, err := b.next()
			if err != nil {
				t.Fatal(err)
			}
			n := rapid.IntRange(0, 160).Draw(t, "read")
			got, _ := io.ReadAll(io.LimitReader(attempt, int64(n)))
			if string(got) != text[:min(n, len(text))] {
				t.Fatalf("got %q", got)
			}
			if read = max(read, n); rapid.Bool().Draw(t, "closes") {
				_ = attempt.Close()
			}
			if !b.whole() {
				if min(read, len(text)) <= most {
					t.Fatalf("%d bytes of %d were read, and it is gone", read, len(text))
				}
				return
			}
		}
		attempt, err := b.next()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(attempt); string(got) != text || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		if b.whole() != (len(text) <= most) {
			t.Fatalf("%d bytes can be sent again: %v", len(text), b.whole())
		}
		b.finish()
		_ = attempt.Close()
		if _ = attempt.Close(); from.times != 1 {
			t.Fatalf("closed %d times", from.times)
		}
	})
}

// TestBodyTakenOver: what an old attempt is just reading is not lost.
func TestBodyTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		b := bodyOf(from, 100)
		old := next(t, b)
		ended := make(chan error, 1)
		go func() {
			_, err := old.Read(make([]byte, 10))
			ended <- err
		}()
		synctest.Wait() // it reads
		young := next(t, b)
		got := make(chan string, 1)
		go func() {
			text, _ := io.ReadAll(young)
			got <- string(text)
		}()
		synctest.Wait() // it waits for the other
		_, _ = io.WriteString(to, "hello, ")
		_, _ = io.WriteString(to, "world")
		_ = to.Close()
		if err := <-ended; !errors.Is(err, errSuperseded) {
			t.Errorf("the old attempt reads on: %v", err)
		}
		if text := <-got; text != "hello, world" {
			t.Errorf("the next has %q", text)
		}
	})
}

// locked is a body that cannot be closed while it is read, like those of requests to a
// http.Server.
type locked struct {
	io.Reader
	lock   chan struct{}
	closed chan struct{}
}

func (l *locked) Read(p []byte) (int, error) {
	l.lock <- struct{}{}
	defer func() { <-l.lock }()
	return l.Reader.Read(p)
}

func (l *locked) Close() error {
	l.lock <- struct{}{}
	defer func() { <-l.lock }()
	close(l.closed)
	return nil
}

// TestBodyStillRead: a request ends although an old attempt still reads its body, which is
// closed when that has come to its end.
func TestBodyStillRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		l := &locked{from, make(chan struct{}, 1), make(chan struct{})}
		b := bodyOf(l, 100)
		old := next(t, b)
		go func() { _, _ = old.Read(make([]byte, 10)) }()
		synctest.Wait() // it reads
		_ = next(t, b).Close()
		finished := make(chan struct{})
		go func() { b.finish(); close(finished) }()
		synctest.Wait()
		select {
		case <-finished:
		default:
			t.Error("it waits for the caller to send more")
		}
		_ = to.Close()
		<-l.closed
		<-finished
	})
}

func TestBodyBroken(t *testing.T) {
	broken := errors.New("the caller has gone")
	b := bodyOf(io.NopCloser(io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken))), 10)
	for range 2 { // and it stays so
		if _, err := io.ReadAll(next(t, b)); !errors.Is(err, broken) {
			t.Errorf("read: %v", err)
		}
	}
	if !errors.Is(b.broken(), broken) {
		t.Errorf("%v", b.broken())
	}
}

// TestBodyMadeAnew: a request that can make its body again need not be kept.
func TestBodyMadeAnew(t *testing.T) {
	made := 0
	first := &closing{Reader: strings.NewReader("x")}
	b := newBody(&http.Request{Body: first, GetBody: func() (io.ReadCloser, error) {
		made++
		return io.NopCloser(strings.NewReader("x")), nil
	}}, 0)
	for range 3 {
		r := next(t, b)
		if got, err := io.ReadAll(r); string(got) != "x" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		_ = r.Close()
	}
	b.finish()
	if made != 2 || first.times != 1 || !b.whole() {
		t.Errorf("made %d times, closed %d times", made, first.times)
	}
	unused := &closing{}
	newBody(&http.Request{Body: unused, GetBody: func() (io.ReadCloser, error) { return nil, nil }}, 0).finish()
	if unused.times != 1 {
		t.Errorf("a body that was not sent was closed %d times", unused.times)
	}
}

func TestOutstanding(t *testing.T) {
	o := newOutstanding(2)
	for range 2 {
		if err := o.begin("a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.begin("a"); err == nil {
		t.Error("a third was let through")
	}
	if err := o.begin("b"); err != nil {
		t.Errorf("another server: %v", err)
	}
	o.end("a")
	if err := o.begin("a"); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	o.end("a")
	o.end("a")
	o.end("b")
	if len(o.at) != 0 {
		t.Errorf("it remembers %v", o.at)
	}
}
