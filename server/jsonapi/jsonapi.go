// Package jsonapi is what the JSON APIs of the agent and the dashboard share: bodies, answers, and the
// protection from web pages in a browser on the same computer.
package jsonapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
)

// BodyTimeout bounds how long a body may take to arrive.
const BodyTimeout = 10 * time.Second

const (
	answerTimeout = 10 * time.Second // for an answer to be taken
	clipped       = 64               // bytes that Clip leaves
)

// Read reads the one JSON object that the body of a request is, of at most so many bytes. It refuses
// unknown fields. A body that is too long is an [http.MaxBytesError].
func Read(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(BodyTimeout)) // a recorder in a test has none
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		w.Header().Set("Connection", "close") // the server would read the rest before it answers
		return invalid("it cannot be read: %w", err)
	}
	_ = control.SetReadDeadline(time.Time{})
	if !utf8.Valid(body) {
		return invalid("it is no valid UTF-8, as JSON must be")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return invalid("want one JSON object with fields that are known: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("there is more than one JSON object")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return leasehold.Errorf("request", leasehold.ErrInvalid, "body", format, args...)
}

// Write answers with a document that must not be stored.
func Write(w http.ResponseWriter, status int, document any) {
	text := Line(document)
	SetHeader(w.Header(), "application/json")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that is gone needs no answer
}

// SetHeader sets the header fields of an answer that is valid only once.
func SetHeader(h http.Header, contentType string) {
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// Line encodes a document as one line. It panics if that is impossible.
func Line(document any) []byte {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		panic(err)
	}
	return line.Bytes()
}

// Hosts are the names by which a server may be called, besides names of this computer and IP addresses.
// Another name may belong to a site that has it resolved to our address, whose pages could then read our
// answers (DNS rebinding).
type Hosts []string

// Include reports whether a request may be for a host, with or without a port.
func (h Hosts) Include(hostport string) bool {
	host := strings.TrimSuffix(strings.ToLower(Host(hostport)), ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host) != nil ||
		slices.ContainsFunc(h, func(known string) bool { return strings.EqualFold(known, host) })
}

// Host returns the host of an address that may have no port.
func Host(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// FromOtherSite reports whether a browser sends a request on behalf of another site. Such a page cannot
// read the answer, but even a request that reads costs something.
func FromOtherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// Clip makes what a client sent fit for an answer or a log.
func Clip(s string) string {
	if len(s) > clipped {
		s = s[:clipped] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
