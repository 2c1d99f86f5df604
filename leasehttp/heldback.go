package leasehttp

import (
	"bufio"
	"maps"
	"net"
	"net/http"
	"sync"
)

// heldBack is an answer of which nothing leaves before the lease was confirmed.
//
// At first it is held: all that is written goes into memory. It is let go when
// that becomes too much, when it is flushed, or when the handler is done: if the
// lease has been held until then, what there is leaves, and so does the rest as
// it is written, each time if the lease is still held. If it is not, an answer of
// which nothing has left is replaced. Of any other the rest is cut off, when the
// handler has returned: it must not be interrupted in the middle of a write, which
// may be on a goroutine where nobody expects a panic.
type heldBack struct {
	to     http.ResponseWriter
	tenure *tenure
	most   int
	before http.Header // what was set when the handler was called

	mu     sync.Mutex // some handlers write and flush on several goroutines
	stage  stage
	status int         // 0 until the handler has given one
	header http.Header // as it was then
	buffer []byte
}

type stage int

const (
	held     stage = iota // nothing has left
	leaving               // the header has left, and what is written leaves
	replaced              // something else has left
	cut                   // a part has left, and no more will
	hijacked              // the handler has the connection
)

func newHeldBack(w http.ResponseWriter, t *tenure, most int) *heldBack {
	return &heldBack{to: w, tenure: t, most: most, before: w.Header().Clone()}
}

// Unwrap lets [http.ResponseController] set deadlines.
func (h *heldBack) Unwrap() http.ResponseWriter { return h.to }

// Header is the handler's, as any ResponseWriter's is.
func (h *heldBack) Header() http.Header { return h.to.Header() }

// WriteHeader holds the header back. What informs of an answer to come is no
// result, and leaves at once.
func (h *heldBack) WriteHeader(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.stage != held || h.status != 0:
	case status < 200 && status != http.StatusSwitchingProtocols:
		h.to.WriteHeader(status)
	default:
		h.begin(status)
	}
}

// begin takes the status, and the header as it is now: as package net/http has
// it, what the handler changes later is for trailers.
func (h *heldBack) begin(status int) {
	if h.status == 0 {
		h.status, h.header = status, h.to.Header().Clone()
	}
}

func (h *heldBack) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin(http.StatusOK)
	if h.stage == held && len(h.buffer)+len(p) <= h.most {
		h.buffer = append(h.buffer, p...)
		return len(p), nil
	}
	if err := h.letGo(); err != nil {
		return 0, err
	}
	return h.to.Write(p)
}

// Flush sends what was written, as [http.Flusher] does.
func (h *heldBack) Flush() { _ = h.FlushError() } // Flusher has no error

// FlushError is Flush for [http.ResponseController].
func (h *heldBack) FlushError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin(http.StatusOK)
	if err := h.letGo(); err != nil {
		return err
	}
	return http.NewResponseController(h.to).Flush()
}

// Hijack hands the connection over to the handler. It ends with the lease.
func (h *heldBack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.confirm(); err != nil {
		return nil, nil, err
	}
	if h.stage == held && h.status != 0 { // some say that they switch before they do
		h.send()
	}
	conn, buffered, err := http.NewResponseController(h.to).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.stage = hijacked
	if err := buffered.Flush(); err != nil { // there is nothing in it, as a rule
		_ = conn.Close()
		return nil, nil, err
	}
	bound := h.tenure.bind(conn)
	buffered.Writer.Reset(bound)
	return bound, buffered, nil
}

func (h *heldBack) confirm() error {
	switch {
	case h.stage == replaced || h.stage == cut:
	case h.stage == hijacked:
		return http.ErrHijacked
	case h.tenure.held():
		return nil
	case h.stage == held:
		h.replace()
	default:
		h.stage = cut
	}
	return errLost
}

// letGo lets out what was held back, if the lease has been held.
func (h *heldBack) letGo() error {
	if err := h.confirm(); err != nil || h.stage != held {
		return err
	}
	h.send() // which takes as long as the client likes
	return h.confirm()
}

func (h *heldBack) send() {
	h.stage = leaving
	if h.status == 0 {
		return
	}
	now := h.to.Header()
	later := maps.Clone(now)
	clear(now)
	maps.Copy(now, h.header)
	h.to.WriteHeader(h.status)
	clear(now)
	maps.Copy(now, later)
	if len(h.buffer) > 0 {
		_, _ = h.to.Write(h.buffer) // a caller that has gone needs no answer
		h.buffer = nil
	}
}

func (h *heldBack) replace() {
	h.stage, h.buffer = replaced, nil
	header := h.to.Header()
	clear(header)
	maps.Copy(header, h.before)
	WriteError(h.to, errLost)
}

// finish is called when the handler has returned. It panics to have package
// net/http cut an answer off of which a part has left.
func (h *heldBack) finish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.stage == held && h.header.Get(HeaderRefused) != "":
		h.send() // the handler itself has found out that it has no lease
	case h.stage == held:
		_ = h.letGo() // if it fails, the answer was replaced
	case h.stage == leaving && h.confirm() != nil, h.stage == cut:
		panic(http.ErrAbortHandler)
	}
}
