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

// closing counts calls of Close.
type closing struct {
	io.Reader
	times int
}

func (c *closing) Close() error { c.times++; return nil }

func bodyOf(from io.ReadCloser, limit int) *body { return newBody(&http.Request{Body: from}, limit) }

func next(t *testing.T, b *body) io.ReadCloser {
	t.Helper()
	r, err := b.next()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each attempt reads the whole body, however much the last one has read, up to the limit.
func TestBodyIsReplayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 100
		text := strings.Repeat("abcdefgh", 20)[:rapid.IntRange(0, 160).Draw(t, "length")]
		from := &closing{Reader: iotest.HalfReader(strings.NewReader(text))}
		b := bodyOf(from, limit)
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
			if !b.replayable() {
				if min(read, len(text)) <= limit {
					t.Fatalf("after %d bytes of %d, the body cannot be replayed", read, len(text))
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
		if b.replayable() != (len(text) <= limit) {
			t.Fatalf("%d bytes can be replayed: %v", len(text), b.replayable())
		}
		b.finish()
		_ = attempt.Close()
		if _ = attempt.Close(); from.times != 1 {
			t.Fatalf("closed %d times", from.times)
		}
	})
}

// Bytes that an old attempt is reading go to the next attempt.
func TestConcurrentReadIsKeptForTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		b := bodyOf(from, 100)
		old := next(t, b)
		finalError := make(chan error, 1)
		go func() {
			_, err := old.Read(make([]byte, 10))
			finalError <- err
		}()
		synctest.Wait() // reads
		young := next(t, b)
		got := make(chan string, 1)
		go func() {
			text, _ := io.ReadAll(young)
			got <- string(text)
		}()
		synctest.Wait() // waits for the first reader
		_, _ = io.WriteString(to, "hello, ")
		_, _ = io.WriteString(to, "world")
		_ = to.Close()
		if err := <-finalError; !errors.Is(err, errSuperseded) {
			t.Errorf("the old attempt can still read: %v", err)
		}
		if text := <-got; text != "hello, world" {
			t.Errorf("the next attempt reads %q", text)
		}
	})
}

// locked is a body whose Close waits for Read, like those of requests to a http.Server.
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

// finish does not wait for an old attempt that reads the body; the body is closed after the
// read.
func TestFinishDoesNotWaitForOldReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		l := &locked{from, make(chan struct{}, 1), make(chan struct{})}
		b := bodyOf(l, 100)
		old := next(t, b)
		go func() { _, _ = old.Read(make([]byte, 10)) }()
		synctest.Wait() // reads
		_ = next(t, b).Close()
		finished := make(chan struct{})
		go func() { b.finish(); close(finished) }()
		synctest.Wait()
		select {
		case <-finished:
		default:
			t.Error("finish waits for the read")
		}
		_ = to.Close()
		<-l.closed
		<-finished
	})
}

func TestBodyReadErrors(t *testing.T) {
	readError := errors.New("the caller has gone")
	b := bodyOf(io.NopCloser(io.MultiReader(strings.NewReader("x"), iotest.ErrReader(readError))), 10)
	for range 2 { // the error is kept
		if _, err := io.ReadAll(next(t, b)); !errors.Is(err, readError) {
			t.Errorf("read: %v", err)
		}
	}
	if !errors.Is(b.readError(), readError) {
		t.Errorf("%v", b.readError())
	}
}

// A body with GetBody is not kept.
func TestBodyWithGetBodyIsNotKept(t *testing.T) {
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
	if made != 2 || first.times != 1 || !b.replayable() {
		t.Errorf("GetBody was called %d times, Close %d times", made, first.times)
	}
	unused := &closing{}
	newBody(&http.Request{Body: unused, GetBody: func() (io.ReadCloser, error) { return nil, nil }}, 0).finish()
	if unused.times != 1 {
		t.Errorf("an unsent body was closed %d times", unused.times)
	}
}

func TestOutstandingLimit(t *testing.T) {
	o := newOutstanding(2)
	for range 2 {
		if err := o.begin("a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.begin("a"); err == nil {
		t.Error("the third request was accepted")
	}
	if err := o.begin("b"); err != nil {
		t.Errorf("another server: %v", err)
	}
	o.end("a")
	if err := o.begin("a"); err != nil {
		t.Errorf("after one ended: %v", err)
	}
	o.end("a")
	o.end("a")
	o.end("b")
	if len(o.at) != 0 {
		t.Errorf("entries remain: %v", o.at)
	}
}
