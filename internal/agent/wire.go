package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
)

// Bounds on what one request may be.
const (
	maxBody      = 64 << 10
	bodyPatience = 10 * time.Second // for a body to arrive
	linePatience = 10 * time.Second // for an answer, or a line of a stream, to be taken
)

// A leaseDocument is a lease. Numbers of 64 bits are strings: keys in
// hexadecimal, as leasehold.Key writes them, and all else in decimal. JavaScript's
// numbers have 53 bits.
type leaseDocument struct {
	Start      string `json:"start"`
	Limit      string `json:"limit"` // "end" for the end of the key space
	Generation string `json:"generation"`
}

func leaseJSON(l leasehold.Lease) leaseDocument {
	start, limit := rangeJSON(l.Range)
	return leaseDocument{start, limit, decimal(l.Generation)}
}

func leasesJSON(leases []leasehold.Lease) []leaseDocument {
	out := make([]leaseDocument, len(leases))
	for i, l := range leases {
		out[i] = leaseJSON(l)
	}
	return out
}

func rangeJSON(r leasehold.Range) (start, limit string) {
	if r.Limit == 0 {
		return r.Start.String(), "end"
	}
	return r.Start.String(), r.Limit.String()
}

func decimal[T ~uint64](n T) string { return strconv.FormatUint(uint64(n), 10) }

// parseDecimal reads what decimal writes.
func parseDecimal(field, text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, bad(field, "is %q, want a number in decimal, as a string", clip(text))
	}
	return n, nil
}

// A keyDocument names a key: by itself, or by what it is the hash of.
type keyDocument struct {
	Key  *string `json:"key"`
	Name *string `json:"name"`
}

func (k keyDocument) parse() (leasehold.Key, error) {
	switch {
	case (k.Key == nil) == (k.Name == nil):
		return 0, bad("key", `want one of "key", 16 hexadecimal digits, and "name", which is hashed`)
	case k.Key != nil:
		return leasehold.ParseKey(*k.Key)
	case *k.Name == "":
		return 0, bad("name", "is empty")
	case !readable(*k.Name):
		return 0, bad("name", "is no valid UTF-8, or has the character U+FFFD, which stands for what is not: say the key instead")
	}
	return leasehold.KeyOf(*k.Name), nil
}

// readable reports whether a text came through as it was sent. JSON's decoder puts
// U+FFFD where it cannot read on, such as at half of a surrogate pair, so that
// different names would become one.
func readable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, utf8.RuneError)
}

// milliseconds reads a duration within bounds; nil is the usual one.
func milliseconds(field string, ms *int64, usual, least, most time.Duration) (time.Duration, error) {
	if ms == nil {
		return usual, nil
	}
	if *ms < least.Milliseconds() || *ms > most.Milliseconds() {
		return 0, bad(field, "is %d, want %d to %d", *ms, least.Milliseconds(), most.Milliseconds())
	}
	return time.Duration(*ms) * time.Millisecond, nil
}

// read reads the one JSON object that a request's body is.
func read(w http.ResponseWriter, r *http.Request, into any) error {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyPatience)) // a recorder in a test has none
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		// The server would wait for the rest of the body before it answers.
		w.Header().Set("Connection", "close")
		return bad("body", "cannot be read: %w", err)
	}
	_ = control.SetReadDeadline(time.Time{})
	if !utf8.Valid(body) {
		return bad("body", "is no valid UTF-8, as JSON must be")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return bad("body", "want one JSON object with fields that are known: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bad("body", "there is more than one JSON object")
	}
	return nil
}

// answer writes a document.
func answer(w http.ResponseWriter, status int, document any) {
	text := encode(document)
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store") // an answer is true from its request on, and only once
	header.Set("X-Content-Type-Options", "nosniff")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(linePatience))
	w.WriteHeader(status)
	_, _ = w.Write(text) // who is gone needs no answer
}

// encode writes a document as one line.
func encode(document any) []byte {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		panic(err) // structs of strings, numbers and booleans
	}
	return line.Bytes()
}

// An errorDocument is every answer that is not what was asked for.
type errorDocument struct {
	Error struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	} `json:"error"`
}

// A verdict is how a kind of error is told: its name, which is never changed, and
// a status.
type verdict struct {
	name   string
	status int
}

// verdictOf is a function of the kind: each has a status of its own but those that
// do not come up here.
func verdictOf(k leasehold.Kind) verdict {
	switch k {
	case leasehold.ErrInvalid:
		return verdict{"invalid", http.StatusBadRequest}
	case leasehold.ErrNotOwner:
		return verdict{"not_owner", http.StatusMisdirectedRequest}
	case leasehold.ErrNoOwner:
		return verdict{"no_owner", http.StatusServiceUnavailable}
	case leasehold.ErrSuspended:
		return verdict{"suspended", http.StatusServiceUnavailable}
	case leasehold.ErrNameTaken:
		return verdict{"name_taken", http.StatusConflict}
	case leasehold.ErrNotFound:
		return verdict{"not_found", http.StatusNotFound}
	case leasehold.ErrUnavailable, leasehold.ErrNotLeader, leasehold.ErrIndeterminate:
		return verdict{"unavailable", http.StatusGatewayTimeout}
	case leasehold.ErrLimit:
		return verdict{"limit", http.StatusTooManyRequests}
	case leasehold.ErrDenied:
		return verdict{"denied", http.StatusForbidden}
	case leasehold.ErrClosed:
		return verdict{"closed", http.StatusGone}
	default:
		return verdict{"internal", http.StatusInternalServerError}
	}
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		refuse(w, http.StatusRequestEntityTooLarge, "the body has more than %d bytes", large.Limit)
		return
	}
	v := verdictOf(leasehold.KindOf(err))
	if v.status == http.StatusServiceUnavailable || v.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	answer(w, v.status, newError(v.name, err.Error()))
}

// refuse answers a request that is not worth being understood.
func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	answer(w, status, newError("invalid", fmt.Sprintf(format, args...)))
}

func newError(kind, message string) (d errorDocument) {
	d.Error.Kind, d.Error.Message = kind, strings.ToValidUTF8(message, "?")
	return d
}

// clip makes what a stranger wrote fit for an error.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
