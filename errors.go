package leasehold

import (
	"errors"
	"fmt"
	"strings"
)

// A Kind is a sentinel error: it classifies an error by what the caller can do.
// Compare with errors.Is(err, leasehold.ErrNotOwner).
//
// Kinds are part of the wire protocol and are never renumbered. A newer peer may send a
// kind without a name in this version; errors.Is still matches its number.
type Kind uint8

// The sentinel errors, and what the caller can do. Unless a method documents
// otherwise, every error except [ErrIndeterminate] means that nothing was done.
const (
	// Other is not a sentinel error: it is the kind of an error without one of the kinds
	// below. See [KindOf].
	Other Kind = 0

	// ErrInvalid means that the input is invalid. Correct it; a retry fails again.
	ErrInvalid Kind = 1

	// ErrNotOwner means that the server does not own the key and has changed
	// nothing. Look the key up again and retry after a short backoff.
	ErrNotOwner Kind = 2

	// ErrNoOwner means that no server owns the key at present: the lease of its last
	// owner has not expired yet, or the namespace has no owner. Nothing was sent. Retry
	// after a backoff.
	ErrNoOwner Kind = 3

	// ErrNotLeader means that the manager is not the leader. Retry at another manager.
	ErrNotLeader Kind = 4

	// ErrNameTaken means that another live process uses this owner name. Stop that process
	// or choose another name; a retry succeeds after the leases of that process have
	// expired.
	ErrNameTaken Kind = 5

	// ErrNotFound means that the namespace, owner or record does not exist.
	ErrNotFound Kind = 6

	// ErrExists means that the object to create exists already.
	ErrExists Kind = 7

	// ErrUnavailable means that a manager, a store or a peer was unreachable
	// or did not reply before the timeout. Retry after a backoff. A method that changes
	// something (of packages leasemap, leasehttp, leasegrpc, fence, admin, or a function
	// that lookup.Do calls) returns it only if nothing was done, and ErrIndeterminate
	// otherwise.
	ErrUnavailable Kind = 8

	// ErrLimit means that a configured limit was reached. An immediate retry adds to the
	// load: shed load, or raise the limit.
	ErrLimit Kind = 9

	// ErrStale means that a token, term or version is older than the newest accepted
	// one: the sender is superseded. Do not retry with it.
	ErrStale Kind = 10

	// ErrClosed means that this process has closed the object.
	ErrClosed Kind = 11

	// ErrInternal means a bug in Leasehold. Please report it.
	ErrInternal Kind = 12

	// ErrDenied means that the managers could not authenticate the caller, or that
	// their access file does not permit the request. Nothing was done. A retry
	// fails until the file or the certificate is changed.
	ErrDenied Kind = 13

	// ErrSuspended means that the server's lease on the key has reached its
	// deadline without a reply from a leader. The server keeps the state and has
	// changed nothing. Look the key up again and retry after a backoff: the table names the
	// same server, unless the range was granted to another.
	ErrSuspended Kind = 14

	// ErrIndeterminate means that the operation may have been executed: the
	// lease ended during the operation, or the reply was lost. Retry only an
	// idempotent operation, or read the state first. An error of this kind has no other kind:
	// errors.Is does not match the kinds of its causes.
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

// Error returns the name of the kind. It makes a Kind usable as a target of errors.Is.
func (k Kind) Error() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// An Error is a failed operation with its kind, its subject and its cause.
type Error struct {
	Op      string // the operation: "join", "parse range"
	Kind    Kind
	Subject string // the object of the operation: a name, a range, an address
	Err     error  // the cause; may be nil
}

// Error formats the error as: operation "subject": cause. Without a cause, the
// name of the kind replaces it.
func (e *Error) Error() string {
	var prefix []string
	if e.Op != "" {
		prefix = append(prefix, e.Op)
	}
	if e.Subject != "" {
		prefix = append(prefix, fmt.Sprintf("%q", e.Subject))
	}
	cause := e.Err
	if cause == nil {
		cause = e.Kind
	}
	if len(prefix) == 0 {
		return cause.Error()
	}
	return strings.Join(prefix, " ") + ": " + cause.Error()
}

// Unwrap returns the kind and the cause, for errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	switch {
	case e.Err == nil:
		return []error{e.Kind}
	case e.Kind == ErrIndeterminate:
		return []error{e.Kind, kindless{e.Err}}
	}
	return []error{e.Kind, e.Err}
}

// kindless hides the kind of a cause from errors.Is and errors.As: the last of several
// attempts may have done nothing although an earlier one was executed.
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
// fmt.Errorf, %w wraps its operand.
func Errorf(op string, kind Kind, subject, format string, args ...any) error {
	return &Error{Op: op, Kind: kind, Subject: subject, Err: fmt.Errorf(format, args...)}
}

// KindOf returns the first kind of err other than [Other], in the order of errors.As: from
// the outermost error inwards and, for joined errors, from left to right. It returns Other
// if there is none, and for nil. It is for code that handles every kind, in a switch for
// instance; compare with a single kind by errors.Is.
func KindOf(err error) Kind {
	switch e := err.(type) { //nolint:errorlint // the traversal of errors.As
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
