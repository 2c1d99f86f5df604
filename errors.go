package leasehold

import (
	"fmt"
	"strings"
)

// A Kind classifies an error by what the caller can do about it. Kinds are
// errors themselves, so that errors.Is(err, leasehold.NotOwner) works on
// whatever our packages return.
//
// Kinds cross the wire and are never renumbered. A peer that is newer than we
// are may send one that has no name here; it is still equal to itself.
type Kind uint8

// The kinds, and what to do about each.
const (
	// Other is none of the kinds below, and the kind of every error that is
	// not ours. Ask for it with [KindOf]: an error of ours that leaves its
	// kind open and wraps another has the kind of the one it wraps.
	Other Kind = 0

	// Invalid means that the input is wrong, and will be wrong the next time.
	// Mend it; do not retry.
	Invalid Kind = 1

	// NotOwner means that the server asked does not own the key, and has changed
	// nothing. Look the key up again and retry after a short backoff.
	NotOwner Kind = 2

	// NoOwner means that nobody owns the key at present: its lease is being
	// waited out, or no owner lives. Retry after a backoff.
	NoOwner Kind = 3

	// NotLeader means that the manager asked does not lead. Ask another.
	NotLeader Kind = 4

	// NameTaken means that another live process uses this owner name. Stop it
	// or choose another name; retrying helps once the other's leases have run
	// out.
	NameTaken Kind = 5

	// NotFound means that there is no such namespace, owner or record.
	NotFound Kind = 6

	// Exists means that what was to be created is there already.
	Exists Kind = 7

	// Unavailable means that whoever was asked did not answer, or could not.
	// Retry after a backoff. Whether the request was carried out is unknown.
	Unavailable Kind = 8

	// Limit means that a configured bound was reached. Retrying at once makes
	// it worse: shed load, or raise the bound.
	Limit Kind = 9

	// Stale means that a token, term or version is older than one already
	// seen: whoever sent it has been superseded. Do not retry with it.
	Stale Kind = 10

	// Closed means that the object was closed, by the caller's own hand.
	Closed Kind = 11

	// Internal means a bug of ours. Please report it.
	Internal Kind = 12

	// Denied means that whoever asks may not: the managers do not know who it is,
	// or their access file does not permit it. Nothing was done. It is refused
	// until somebody changes that file or the certificate; whoever retries does it
	// slowly.
	Denied Kind = 13

	// Suspended means that the server asked has a lease on the key which has reached its
	// deadline, because no manager that leads has answered. It keeps the state, and has
	// changed nothing. Retry after a backoff, at the server that the table names by then:
	// the same one, unless the range was granted to another.
	Suspended Kind = 14
)

var kindNames = [...]string{
	Other:       "error",
	Invalid:     "invalid",
	NotOwner:    "not the owner",
	NoOwner:     "no owner",
	NotLeader:   "not the leader",
	NameTaken:   "name taken",
	NotFound:    "not found",
	Exists:      "exists",
	Unavailable: "unavailable",
	Limit:       "limit reached",
	Stale:       "stale",
	Closed:      "closed",
	Internal:    "internal error",
	Denied:      "not permitted",
	Suspended:   "suspended",
}

// Error makes a Kind usable as a target of errors.Is.
func (k Kind) Error() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// An Error says which operation failed, in what way, on what, and why.
type Error struct {
	Op      string // what was being done: "join", "parse range"
	Kind    Kind
	Subject string // what it was done to: a name, a range, an address
	Err     error  // the cause, if there is one
}

// Error writes the error as: operation "subject": cause. Without a cause it
// names the kind instead.
func (e *Error) Error() string {
	var what []string
	if e.Op != "" {
		what = append(what, e.Op)
	}
	if e.Subject != "" {
		what = append(what, fmt.Sprintf("%q", e.Subject))
	}
	why := e.Err
	if why == nil {
		why = e.Kind
	}
	if len(what) == 0 {
		return why.Error()
	}
	return strings.Join(what, " ") + ": " + why.Error()
}

// Unwrap gives errors.Is and errors.As both the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Errorf returns an [Error] whose cause is the formatted text. As with
// fmt.Errorf, %w keeps what it formats within reach of errors.Is and
// errors.As.
func Errorf(op string, kind Kind, subject, format string, args ...any) error {
	return &Error{Op: op, Kind: kind, Subject: subject, Err: fmt.Errorf(format, args...)}
}

// KindOf returns the first kind other than [Other] that it meets in err, from
// the outside in and, where errors were joined, from left to right: the order
// of errors.As. Without any, and for nil, it returns Other.
func KindOf(err error) Kind {
	switch e := err.(type) { //nolint:errorlint // this is the walk that errors.As does
	case Kind:
		return e
	case interface{ Unwrap() error }:
		return KindOf(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if kind := KindOf(inner); kind != Other {
				return kind
			}
		}
	}
	return Other
}
