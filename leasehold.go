package leasehold

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Generation numbers grants. Within one namespace generations strictly rise
// and are never reused, across crashes and failovers, so that a
// generation names one grant to one owner for ever. It is also the fencing
// token: a store that remembers the highest generation it has seen for a key,
// and refuses lower ones, is safe even from an owner whose clock is broken.
//
// The zero Generation names no grant. Generations stay below 2^63.
type Generation uint64

// An LSN (log sequence number) numbers the changes of one namespace's lease
// table, from 1 and without gaps. LSN 0 is the empty table.
type LSN uint64

// A Term numbers leaders. Each new leader has a higher term than any before.
type Term uint64

// Limits on names. They bound what a peer can make us store.
const (
	MaxNamespaceLen = 64
	MaxOwnerIDLen   = 128
	MaxAddrLen      = 256
)

// A Namespace names one pool of servers with one key space and one lease
// table. Nothing done in one namespace changes another.
type Namespace string

// Validate reports what is wrong with the name: it has 1 to 64 characters out
// of a-z, 0-9, '.', '_' and '-', and starts with a letter or a digit. Such a
// name needs no escaping in a path, a URL, a metric label or a store's key.
func (n Namespace) Validate() error {
	const op = "namespace"
	if n == "" || len(n) > MaxNamespaceLen {
		return Errorf(op, ErrInvalid, clip(string(n)), "want 1 to %d characters, have %d bytes", MaxNamespaceLen, len(n))
	}
	for i, c := range string(n) {
		word := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !word && (i == 0 || c != '.' && c != '_' && c != '-') {
			return Errorf(op, ErrInvalid, clip(string(n)), "%q at position %d: use a-z and 0-9, and after the first also . _ -", c, i)
		}
	}
	return nil
}

// An OwnerID is the name of an owner: the same across restarts of a server,
// different from every other server of its namespace. Names are compared byte
// by byte.
type OwnerID string

// Validate reports what is wrong with the name: it has 1 to 128 bytes of
// printable UTF-8, the space being the only white space. Whatever could move a
// terminal's cursor or turn the direction of text is not printable: names end
// up in logs and on consoles.
func (o OwnerID) Validate() error {
	const op = "owner id"
	s := string(o)
	if s == "" || len(s) > MaxOwnerIDLen {
		return Errorf(op, ErrInvalid, clip(s), "want 1 to %d bytes, have %d", MaxOwnerIDLen, len(s))
	}
	for i, c := range s {
		if c == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			return Errorf(op, ErrInvalid, clip(s), "not valid UTF-8: byte %#02x at position %d", s[i], i)
		}
		if !unicode.IsPrint(c) {
			return Errorf(op, ErrInvalid, clip(s), "character %U at position %d is not printable", c, i)
		}
	}
	return nil
}

// clip makes hostile input fit for an error: too short to flood a log, and
// UTF-8, because errors cross the wire in fields that must be.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "..."
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}

// A Session names one run of an owner process. It is random, so that a
// restarted server is never taken for its predecessor. The zero Session names
// none.
type Session [16]byte

// NewSession draws a session from random, which must be a cryptographic
// source such as crypto/rand.Reader outside of tests. It reads exactly 16
// bytes, and takes a source that gives only zeros for the broken one that it
// is.
func NewSession(random io.Reader) (Session, error) {
	const op, subject = "new session", "random source"
	var s Session
	if _, err := io.ReadFull(random, s[:]); err != nil {
		return Session{}, &Error{Op: op, Kind: ErrUnavailable, Subject: subject, Err: err}
	}
	if s.IsZero() {
		return Session{}, Errorf(op, ErrUnavailable, subject, "%d bytes, all of them zero", len(s))
	}
	return s, nil
}

// IsZero reports whether s names no session.
func (s Session) IsZero() bool { return s == Session{} }

// String writes the session as 32 hexadecimal digits, the form [ParseSession]
// reads.
func (s Session) String() string { return hex.EncodeToString(s[:]) }

// Short is a prefix that is enough to tell sessions apart in a log.
func (s Session) Short() string { return hex.EncodeToString(s[:4]) }

// ParseSession reads a session written as exactly 32 hexadecimal digits, in
// either case. It reads the zero Session too: whoever needs one that names a
// process asks [Session.IsZero].
func ParseSession(text string) (Session, error) {
	const op = "parse session"
	var s Session
	if why := whyNotHex(text, 2*len(s)); why != nil {
		return Session{}, &Error{Op: op, Kind: ErrInvalid, Subject: clip(text), Err: why}
	}
	if _, err := hex.Decode(s[:], []byte(text)); err != nil {
		return Session{}, &Error{Op: op, Kind: ErrInvalid, Subject: clip(text), Err: err}
	}
	return s, nil
}

// A Lease is the right of one owner to a range of keys. Two leases are the
// same right if their generations are equal; a lease that was split keeps its
// generation on the part that stays.
type Lease struct {
	Range      Range
	Generation Generation
}

// String writes the lease as "range@generation".
func (l Lease) String() string { return fmt.Sprintf("%v@%d", l.Range, l.Generation) }
