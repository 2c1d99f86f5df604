package leasehttp

import (
	"io"
	"net/http"
	"time"
)

// unstalled bounds how long a caller may keep its request waiting: while we want
// more of its body, or want it to take more of its answer. Such a request counts
// as outstanding at a server, and some that do nothing would keep out all others.
// A stream on which nothing happens because the server has nothing to say is not
// meant: nobody waits for its caller.
//
// What is returned is to be called at the end. It leaves the caller as much time
// for what is left in buffers.
func unstalled(w http.ResponseWriter, r *http.Request, longest time.Duration) (http.ResponseWriter, *http.Request, func()) {
	s := &steady{ResponseWriter: w, control: http.NewResponseController(w), longest: longest}
	_ = s.control.SetWriteDeadline(time.Time{}) // that of the request before; what has no deadlines does not stall
	if r.Body != nil && r.Body != http.NoBody {
		read := *r
		read.Body = &steadyBody{r.Body, s}
		r = &read
	}
	return s, r, s.extend
}

type steady struct {
	http.ResponseWriter
	control *http.ResponseController
	longest time.Duration
}

func (s *steady) extend() { _ = s.control.SetWriteDeadline(time.Now().Add(s.longest)) }

// Unwrap lets [http.ResponseController] hijack.
func (s *steady) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *steady) Write(p []byte) (int, error) {
	s.extend()
	return s.ResponseWriter.Write(p)
}

// FlushError is for [http.ResponseController].
func (s *steady) FlushError() error {
	s.extend()
	return s.control.Flush()
}

type steadyBody struct {
	io.ReadCloser
	steady *steady
}

func (b *steadyBody) Read(p []byte) (int, error) {
	// When the body has ended, the server goes on reading to notice that the caller
	// has gone. It takes the deadline away for that.
	_ = b.steady.control.SetReadDeadline(time.Now().Add(b.steady.longest))
	return b.ReadCloser.Read(p)
}
