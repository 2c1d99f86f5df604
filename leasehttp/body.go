package leasehttp

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// A body is the body of a request that may be sent several times. It keeps the bytes that
// were read, up to a limit: a server that rejects a request has not read much of it. When
// more is read, the kept bytes are dropped and the body cannot be sent again.
//
// A http.RoundTripper may continue to read the body of a request after it has returned the
// response. So each attempt reads through its own bodyReader, which fails once the next
// attempt has started. Bytes that an old reader is reading at that moment are kept for the
// next one.
//
// A request without a body has a nil body. It is safe for concurrent use.
type body struct {
	from    io.ReadCloser
	getBody func() (io.ReadCloser, error) // the request's GetBody; if set, no bytes are kept
	limit   int

	reading chan struct{} // full during a read

	mu         sync.Mutex
	kept       []byte // the bytes read so far
	overflowed bool   // more was read than is kept
	err        error  // what ended it; io.EOF if it was read to its end
	current    *bodyReader
	finished   bool // there will be no further attempt
	closed     bool // from is closed, or belongs to the http.RoundTripper
}

type bodyReader struct {
	of  *body
	at  int // offset in kept
	end bool
}

var errSuperseded = errors.New("another attempt has taken over the body of this request")

// newBody returns the body of a request, of which so many bytes may be kept.
func newBody(r *http.Request, limit int) *body {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	// One more, because the end of a body is found by reading beyond it.
	return &body{from: r.Body, getBody: r.GetBody, limit: limit + 1, reading: make(chan struct{}, 1)}
}

func (b *body) next() (io.ReadCloser, error) {
	if b == nil {
		return nil, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.getBody != nil && b.closed:
		return b.getBody()
	case b.getBody != nil:
		b.closed = true
		return b.from, nil
	case b.overflowed || b.closed:
		return nil, errSuperseded // impossible after replayable
	}
	b.current = &bodyReader{of: b}
	return b.current, nil
}

func (b *body) replayable() bool {
	if b == nil || b.getBody != nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.overflowed && !b.closed
}

// readError returns the error of reading the body from its source; nil at its end.
func (b *body) readError() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if errors.Is(b.err, io.EOF) {
		return nil
	}
	return b.err
}

// finish is called after the last attempt. The body is closed when that attempt has closed
// its reader, which may be later.
func (b *body) finish() {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.finished = true
	closing, busy := b.closes(), len(b.reading) > 0
	b.mu.Unlock()
	switch {
	case closing && busy:
		// An old attempt is reading. Close ends the read of a pipe, for example, but blocks
		// until the end of the read for a request to a http.Server.
		go b.from.Close() //nolint:errcheck // the request has ended
	case closing:
		_ = b.from.Close() // the request has ended
	}
}

func (b *body) closes() bool {
	if !b.finished || b.closed || b.current != nil && !b.current.end {
		return false
	}
	b.closed = true
	return true
}

func (t *bodyReader) Close() error {
	b := t.of
	b.mu.Lock()
	t.end = true
	closing := b.closes()
	b.mu.Unlock()
	if closing {
		return b.from.Close()
	}
	return nil
}

func (t *bodyReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b := t.of
	if s := t.readKept(p); s.done {
		return s.n, s.err
	}
	b.reading <- struct{}{}
	defer func() { <-b.reading }()
	// An older attempt may have added to kept meanwhile.
	s := t.readKept(p)
	if s.done {
		return s.n, s.err
	}
	if s.full && !b.discardKept(t) {
		return 0, errSuperseded
	}
	n, err := b.from.Read(p[:s.n])
	return t.keep(p[:n], err)
}

// A step is the result of reading the kept bytes. If it is not done, all kept bytes have
// been read, and up to n bytes may be read from the source.
type step struct {
	n    int
	err  error
	done bool
	full bool // the kept bytes must be dropped first
}

func (t *bodyReader) readKept(p []byte) step {
	b := t.of
	b.mu.Lock()
	defer b.mu.Unlock()
	switch free := b.limit - len(b.kept); {
	case b.current != t || t.end:
		return step{0, errSuperseded, true, false}
	case t.at < len(b.kept):
		n := copy(p, b.kept[t.at:])
		t.at += n
		return step{n, nil, true, false}
	case b.err != nil:
		return step{0, b.err, true, false}
	case b.overflowed:
		return step{n: len(p)}
	case free == 0:
		return step{n: len(p), full: true}
	default:
		return step{n: min(len(p), free)}
	}
}

// discardKept drops the kept bytes, because the attempt is about to read beyond the limit.
// It returns false if a newer attempt has started.
func (b *body) discardKept(t *bodyReader) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current != t {
		return false
	}
	b.overflowed, b.kept, t.at = true, nil, 0
	return true
}

// keep records the bytes that were read; if a newer attempt has started, they are for it.
func (t *bodyReader) keep(read []byte, err error) (int, error) {
	b := t.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	if !b.overflowed {
		b.kept = append(b.kept, read...)
	}
	if b.current != t {
		return 0, errSuperseded
	}
	if !b.overflowed {
		t.at = len(b.kept)
	}
	return len(read), err
}
