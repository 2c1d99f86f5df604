package leasehold

import (
	"errors"
	"fmt"
	"strings"
)

// A Kind is a sentinel error: it classifies an error by what the caller can do
// about it. Compare with errors.Is(err, leasehold.ErrNotOwner).
//
// Kinds cross the wire and are never renumbered. A newer peer may send a kind that
// has no name here; it is still equal to itself.
type Kind uint8

// The sentinel errors, and what to do about each. Unless a method documents
// otherwise, every error but [ErrIndeterminate] means that nothing was done.
const (
	// Other is no sentinel error: it is the kind of every error that is none of
	// those below. See [KindOf].
	Other Kind = 0

	// ErrInvalid means that the input is wrong, and will be wrong the next time.
	// Correct it; do not retry.
	ErrInvalid Kind = 1

	// ErrNotOwner means that the server does not own the key, and has changed
	// nothing. Look the key up again and retry after a short backoff.
	ErrNotOwner Kind = 2

	// ErrNoOwner means that no server owns the key at present: its lease has not
	// expired yet, or there is no owner. Nothing was sent. Retry after a backoff.
	ErrNoOwner Kind = 3

	// ErrNotLeader means that the manager is not the leader. Ask another.
	ErrNotLeader Kind = 4

	// ErrNameTaken means that another live process uses this owner name. Stop it
	// or choose another name; a retry succeeds once the other's leases have
	// expired.
	ErrNameTaken Kind = 5

	// ErrNotFound means that there is no such namespace, owner or record.
	ErrNotFound Kind = 6

	// ErrExists means that what was to be created exists already.
	ErrExists Kind = 7

	// ErrUnavailable means that a manager, a store or a peer could not be reached,
	// or did not answer in time. Retry after a backoff. A method that changes
	// something (of packages leasemap, leasehttp, leasegrpc, fence, admin, or a function
	// that lookup.Do calls) returns it only if nothing was done, and ErrIndeterminate
	// otherwise.
	ErrUnavailable Kind = 8

	// ErrLimit means that a configured bound was reached. To retry at once makes
	// it worse: shed load, or raise the bound.
	ErrLimit Kind = 9

	// ErrStale means that a token, term or version is older than one already
	// seen: the sender has been superseded. Do not retry with it.
	ErrStale Kind = 10

	// ErrClosed means that the object was closed by this process.
	ErrClosed Kind = 11

	// ErrInternal means a bug in Leasehold. Please report it.
	ErrInternal Kind = 12

	// ErrDenied means that the managers could not authenticate the caller, or that
	// their access file does not permit the request. Nothing was done. A retry
	// fails until the file or the certificate is changed.
	ErrDenied Kind = 13

	// ErrSuspended means that the server has a lease on the key which has reached its
	// deadline, because no manager that leads has answered. The server keeps the state, and has
	// changed nothing. Retry after a backoff, at the server that the table names by then:
	// the same one, unless the range was granted to another.
	ErrSuspended Kind = 14

	// ErrIndeterminate means that the operation may have been executed or not: the
	// lease ended while the server worked, or an answer was lost. Retry only what is
	// idempotent, or read the state first. An error of this kind has no other:
	// errors.Is does not find the kinds of its causes.
	ErrIndeterminate Kind = 15
)

var kindNames = [...]string{
	Other:            "error",
	ErrInvalid:       "invalid",
	ErrNotOwner:      "not the owner",
	ErrNoOwner:       "no owner",
	ErrNotLeader:     "not the leader",
	ErrNameTaken:     "name taken",
	ErrNotFound:      "not found",
	ErrExists:        "exists",
	ErrUnavailable:   "unavailable",
	ErrLimit:         "limit reached",
	ErrStale:         "stale",
	ErrClosed:        "closed",
	ErrInternal:      "internal error",
	ErrDenied:        "not permitted",
	ErrSuspended:     "suspended",
	ErrIndeterminate: "indeterminate",
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
	switch {
	case e.Err == nil:
		return []error{e.Kind}
	case e.Kind == ErrIndeterminate:
		return []error{e.Kind, kindless{e.Err}}
	}
	return []error{e.Kind, e.Err}
}

// kindless hides the kind of a cause. The last of several attempts may have done nothing,
// and an earlier one may have been executed.
type kindless struct{ err error }

func (k kindless) Error() string { return k.err.Error() }

func (k kindless) Is(target error) bool {
	_, kind := target.(Kind) //nolint:errorlint // it is the target
	return !kind && errors.Is(k.err, target)
}

func (k kindless) As(target any) bool {
	switch target.(type) {
	case *Kind, **Error:
		return false
	}
	return errors.As(k.err, target)
}

// Errorf returns an [Error] whose cause is the formatted text. As with
// fmt.Errorf, %w keeps what it formats within reach of errors.Is and
// errors.As.
func Errorf(op string, kind Kind, subject, format string, args ...any) error {
	return &Error{Op: op, Kind: kind, Subject: subject, Err: fmt.Errorf(format, args...)}
}

// KindOf is for code that handles every kind, in a switch for instance; compare a single
// one with errors.Is. It returns the first kind other than [Other] that it meets in err, from
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
