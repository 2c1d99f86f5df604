package agent

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

const (
	maxBody     = 64 << 10
	lineTimeout = 10 * time.Second // timeout of writing a line
)

// A leaseDocument is a lease, in the form of package admin: many readers of JSON keep only 53 bits of a
// number.
type leaseDocument struct {
	admin.Interval
	Generation leasehold.Generation `json:"generation,string"`
}

func leaseOf(keys leasehold.Range, generation leasehold.Generation) leaseDocument {
	return leaseDocument{admin.Interval{Start: admin.Point(keys.Start), Limit: admin.Limit(keys.Limit)}, generation}
}

func leasesOf(leases []leasehold.Lease) []leaseDocument {
	out := make([]leaseDocument, len(leases))
	for i, l := range leases {
		out[i] = leaseOf(l.Range, l.Generation)
	}
	return out
}

// A keyDocument is a key, given directly or as a name to hash.
type keyDocument struct {
	Key  *string `json:"key,omitempty" doc:"16 hexadecimal digits"`
	Name *string `json:"name,omitempty" doc:"the name that is hashed to the key"`
}

// Alternatives returns the fields of which a request has exactly one, for the reference.
func (keyDocument) Alternatives() []string { return []string{"key", "name"} }

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

// readable reports whether a text was decoded without loss. JSON's decoder replaces invalid input, such as
// half of a surrogate pair, by U+FFFD, so different names would become equal.
func readable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, utf8.RuneError)
}

// milliseconds parses a duration within limits; nil is the default.
func milliseconds(field string, ms *int64, usual, least, most time.Duration) (time.Duration, error) {
	if ms == nil {
		return usual, nil
	}
	if *ms < least.Milliseconds() || *ms > most.Milliseconds() {
		return 0, bad(field, "is %d, want %d to %d", *ms, least.Milliseconds(), most.Milliseconds())
	}
	return time.Duration(*ms) * time.Millisecond, nil
}

func handle(do func(http.ResponseWriter, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		document, err := do(w, r)
		if err != nil {
			fail(w, err)
			return
		}
		jsonapi.Write(w, http.StatusOK, document)
	}
}

// handleOwner returns a handler of a request with a body, for a joined owner.
func handleOwner[Body any](a *Agent, do func(*session, *http.Request, *Body) (any, error)) http.HandlerFunc {
	return handle(func(w http.ResponseWriter, r *http.Request) (any, error) {
		s, err := a.session(r)
		if err != nil {
			return nil, err
		}
		var body Body
		if err := jsonapi.Read(w, r, maxBody, &body); err != nil {
			return nil, err
		}
		return do(s, r, &body)
	})
}

// An errorDocument is the response to a failed request.
type errorDocument struct {
	Error struct {
		Kind    string `json:"kind" enum:"invalid,denied,not_found,name_taken,closed,limit,suspended,no_owner,not_owner,unavailable,internal"`
		Message string `json:"message"`
	} `json:"error"`
}

// A verdict is the representation of a kind of error in the API: a stable name, and an HTTP status.
type verdict struct {
	name   string
	status int
}

var verdicts = map[leasehold.Kind]verdict{
	leasehold.ErrInvalid:       {"invalid", http.StatusBadRequest},
	leasehold.ErrNotOwner:      {"not_owner", http.StatusMisdirectedRequest},
	leasehold.ErrNoOwner:       {"no_owner", http.StatusServiceUnavailable},
	leasehold.ErrSuspended:     {"suspended", http.StatusServiceUnavailable},
	leasehold.ErrNameTaken:     {"name_taken", http.StatusConflict},
	leasehold.ErrNotFound:      {"not_found", http.StatusNotFound},
	leasehold.ErrUnavailable:   {"unavailable", http.StatusGatewayTimeout},
	leasehold.ErrIndeterminate: {"unavailable", http.StatusGatewayTimeout},
	leasehold.ErrNotLeader:     {"unavailable", http.StatusGatewayTimeout},
	leasehold.ErrLimit:         {"limit", http.StatusTooManyRequests},
	leasehold.ErrDenied:        {"denied", http.StatusForbidden},
	leasehold.ErrClosed:        {"closed", http.StatusGone},
}

func verdictOf(k leasehold.Kind) verdict {
	if v, ok := verdicts[k]; ok {
		return v
	}
	return verdict{"internal", http.StatusInternalServerError}
}

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
	jsonapi.Write(w, v.status, newError(v.name, err.Error()))
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	jsonapi.Write(w, status, newError("invalid", fmt.Sprintf(format, args...)))
}

func newError(kind, message string) (d errorDocument) {
	d.Error.Kind, d.Error.Message = kind, strings.ToValidUTF8(message, "?")
	return d
}
