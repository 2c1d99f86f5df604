package leasehttp

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// A body is what a request sends, so that it can be sent again if its server
// refuses it. What is read is kept, up to a bound: a request that its server
// refuses at once has not been read far. Once more than that was read, there is
// no second time.
//
// Sending again is not as simple as it looks, because a http.RoundTripper may go
// on reading the body of a request that it has answered. So each attempt reads
// through a copy of its own, a try, which gets nothing more once the next one has
// begun. What an old try is just reading goes into what is kept, and is not lost.
//
// A nil body is that of a request without one.
type body struct {
	from  io.ReadCloser
	fresh func() (io.ReadCloser, error) // makes another, if the request can; then nothing is kept
	most  int

	reading chan struct{} // full while somebody reads from

	mu       sync.Mutex
	kept     []byte // what was read, from the beginning
	passed   bool   // more was read than is kept
	err      error  // what ended it; io.EOF if it was read to its end
	current  *try
	finished bool // there will be no further attempt
	closed   bool // so is from, or whoever sent it will see to that
}

type try struct {
	of  *body
	at  int // how much of what is kept it has had
	end bool
}

var errSuperseded = errors.New("another attempt has taken over the body of this request")

// newBody returns the body of a request, of which so many bytes may be kept.
func newBody(r *http.Request, most int) *body {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	// One more, because the end of a body is found by reading beyond it.
	return &body{from: r.Body, fresh: r.GetBody, most: most + 1, reading: make(chan struct{}, 1)}
}

func (b *body) next() (io.ReadCloser, error) {
	if b == nil {
		return nil, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.fresh != nil && b.closed:
		return b.fresh()
	case b.fresh != nil:
		b.closed = true
		return b.from, nil
	case b.passed || b.closed:
		return nil, errSuperseded // whole would have said so
	}
	b.current = &try{of: b}
	return b.current, nil
}

func (b *body) whole() bool {
	if b == nil || b.fresh != nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.passed && !b.closed
}

// broken returns what kept the body from being read, which is no fault of a
// server's.
func (b *body) broken() error {
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

// finish says that there will be no further attempt. The body is closed when the
// last one has closed its own, which may be later.
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
		// An old attempt still reads. To close the body ends that, if it is a pipe for
		// instance; but that of a request to a http.Server would have us wait for the
		// caller to send more. Either way this ends with the reading.
		go b.from.Close() //nolint:errcheck // nobody is left who could be told
	case closing:
		_ = b.from.Close() // nobody is left who could be told
	}
}

func (b *body) closes() bool {
	if !b.finished || b.closed || b.current != nil && !b.current.end {
		return false
	}
	b.closed = true
	return true
}

func (t *try) Close() error {
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

func (t *try) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b := t.of
	if s := t.readKept(p); s.done {
		return s.n, s.err
	}
	b.reading <- struct{}{}
	defer func() { <-b.reading }()
	// Whoever was reading meanwhile may have left something.
	s := t.readKept(p)
	if s.done {
		return s.n, s.err
	}
	if s.full && !b.giveUp(t) {
		return 0, errSuperseded
	}
	n, err := b.from.Read(p[:s.n])
	return t.keep(p[:n], err)
}

// A step is how the reading of what is kept came out. If it is not done, there is
// nothing left of that and more to come, of which n bytes may be read.
type step struct {
	n    int
	err  error
	done bool
	full bool // reading on means to give up what is kept
}

func (t *try) readKept(p []byte) step {
	b := t.of
	b.mu.Lock()
	defer b.mu.Unlock()
	switch free := b.most - len(b.kept); {
	case b.current != t || t.end:
		return step{0, errSuperseded, true, false}
	case t.at < len(b.kept):
		n := copy(p, b.kept[t.at:])
		t.at += n
		return step{n, nil, true, false}
	case b.err != nil:
		return step{0, b.err, true, false}
	case b.passed:
		return step{n: len(p)}
	case free == 0:
		return step{n: len(p), full: true}
	default:
		return step{n: min(len(p), free)}
	}
}

// giveUp lets go of what is kept, because a try is about to read more than that.
// It reports false if another has begun.
func (b *body) giveUp(t *try) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current != t {
		return false
	}
	b.passed, b.kept, t.at = true, nil, 0
	return true
}

// keep keeps what was read by a try, for the next one if there is one by now.
func (t *try) keep(read []byte, err error) (int, error) {
	b := t.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	if !b.passed {
		b.kept = append(b.kept, read...)
	}
	if b.current != t {
		return 0, errSuperseded
	}
	if !b.passed {
		t.at = len(b.kept)
	}
	return len(read), err
}
