package leasehttp

import (
	"bufio"
	"maps"
	"net"
	"net/http"
	"sync"
)

// heldBack is a response of which nothing is sent before the lease is confirmed.
//
// At first the response is buffered. It is sent when the buffer is full, when the handler
// flushes, or when it returns, if the lease has been held until then. After that, each write
// checks the lease. Without the lease, a response of which nothing was sent is replaced by an
// error. A response that was partly sent is cut off when the handler has returned, by a
// panic; a panic in Write could be on a goroutine of the handler that does not recover.
type heldBack struct {
	to           http.ResponseWriter
	leaseMonitor *leaseMonitor
	limit        int
	before       http.Header // before the handler was called

	mu     sync.Mutex // handlers may write and flush on several goroutines
	stage  stage
	status int         // 0 until the handler sets it
	header http.Header // at that time
	buffer []byte
}

type stage int

const (
	held     stage = iota // nothing was sent
	sending               // the header was sent, and writes are sent
	replaced              // an error was sent instead
	cut                   // a part was sent, and the rest is dropped
	hijacked              // the handler has the connection
)

func newHeldBack(w http.ResponseWriter, t *leaseMonitor, limit int) *heldBack {
	return &heldBack{to: w, leaseMonitor: t, limit: limit, before: w.Header().Clone()}
}

// Unwrap lets [http.ResponseController] set deadlines.
func (h *heldBack) Unwrap() http.ResponseWriter { return h.to }

// Header returns the header of the underlying writer.
func (h *heldBack) Header() http.Header { return h.to.Header() }

// WriteHeader buffers the header. Informational responses are sent immediately.
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

// begin records the status and the header. As in package net/http, later changes of the
// header are for trailers.
func (h *heldBack) begin(status int) {
	if h.status == 0 {
		h.status, h.header = status, h.to.Header().Clone()
	}
}

func (h *heldBack) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin(http.StatusOK)
	if h.stage == held && len(h.buffer)+len(p) <= h.limit {
		h.buffer = append(h.buffer, p...)
		return len(p), nil
	}
	if err := h.sendHeld(); err != nil {
		return 0, err
	}
	return h.to.Write(p)
}

// Flush implements [http.Flusher].
func (h *heldBack) Flush() { _ = h.FlushError() } // Flusher has no error

// FlushError is for [http.ResponseController].
func (h *heldBack) FlushError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin(http.StatusOK)
	if err := h.sendHeld(); err != nil {
		return err
	}
	return http.NewResponseController(h.to).Flush()
}

// Hijack passes the connection to the handler. It is closed when the lease ends.
func (h *heldBack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.confirm(); err != nil {
		return nil, nil, err
	}
	if h.stage == held && h.status != 0 { // the handler has written 101 before it hijacks
		h.send()
	}
	conn, buffered, err := http.NewResponseController(h.to).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.stage = hijacked
	if err := buffered.Flush(); err != nil { // usually empty
		_ = conn.Close()
		return nil, nil, err
	}
	bound := h.leaseMonitor.bind(conn)
	buffered.Writer.Reset(bound)
	return bound, buffered, nil
}

func (h *heldBack) confirm() error {
	switch {
	case h.stage == replaced || h.stage == cut:
	case h.stage == hijacked:
		return http.ErrHijacked
	case h.leaseMonitor.held():
		return nil
	case h.stage == held:
		h.replace()
	default:
		h.stage = cut
	}
	return errLost
}

// sendHeld sends the buffered response if the lease has been held.
func (h *heldBack) sendHeld() error {
	if err := h.confirm(); err != nil || h.stage != held {
		return err
	}
	h.send() // may block on the client
	return h.confirm()
}

func (h *heldBack) send() {
	h.stage = sending
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
		_, _ = h.to.Write(h.buffer) // fails only if the caller has disconnected
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

// finish is called when the handler has returned. It panics if a part of the response was
// sent without the lease, so that package net/http closes the connection.
func (h *heldBack) finish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.stage == held && h.header.Get(HeaderRefused) != "":
		h.send() // the handler has rejected the request itself
	case h.stage == held:
		_ = h.sendHeld() // if it fails, the response was replaced
	case h.stage == sending && h.confirm() != nil, h.stage == cut:
		panic(http.ErrAbortHandler)
	}
}
