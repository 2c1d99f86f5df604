package leasehold

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Generation numbers grants. Within one namespace generations strictly increase
// and are never reused, across crashes and failovers: a
// generation identifies one grant to one owner. It is also the fencing
// token: a store that records the highest generation per key
// and refuses lower ones is safe even from an owner whose clock is broken.
//
// The zero Generation is no grant. Generations are less than 2^63.
type Generation uint64

// An LSN (log sequence number) numbers the changes of one namespace's lease
// table, from 1 and without gaps. LSN 0 is the empty table.
type LSN uint64

// A Term numbers leaders. Each new leader has a higher term than all before.
type Term uint64

// Limits on names, in bytes. They bound the memory that a peer can occupy.
const (
	MaxNamespaceLen = 64
	MaxOwnerIDLen   = 128
	MaxAddrLen      = 256
)

// A Namespace names one pool of servers with one key space and one lease
// table. Namespaces do not affect each other.
type Namespace string

// Validate returns an error if the name is invalid. A valid name has 1 to 64 characters of
// a-z, 0-9, '.', '_' and '-', and starts with a letter or a digit. It
// needs no escaping in a path, a URL, a metric label or a store's key.
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

// An OwnerID is the name of an owner. It is stable across restarts of a server and
// unique in its namespace. Names are compared byte by byte.
type OwnerID string

// Validate returns an error if the name is invalid. A valid name has 1 to 128 bytes of
// printable UTF-8; the space is the only white space. Control characters and characters
// that change the text direction are not printable, because names appear in logs and on
// terminals.
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

// clip makes untrusted input safe for an error: at most 40 bytes and "...", to bound log
// lines, and valid UTF-8, as protobuf string fields require.
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

// A Session identifies one run of an owner process. It is random, so that managers
// distinguish a restarted server from its predecessor. The zero Session is no session.
type Session [16]byte

// NewSession reads a session, 16 bytes, from random. Outside of tests, random must be a
// cryptographic source such as crypto/rand.Reader. A source that returns only zeros is
// broken, and NewSession returns an error.
func NewSession(random io.Reader) (Session, error) {
	const op, subject = "new session", "random source"
	var s Session
	if _, err := io.ReadFull(random, s[:]); err != nil {
		return Session{}, &Error{Op: op, Kind: ErrUnavailable, Subject: subject, Err: err}
	}
	if s.IsZero() {
		return Session{}, Errorf(op, ErrUnavailable, subject, "all %d bytes are zero", len(s))
	}
	return s, nil
}

// IsZero reports whether s is the zero Session.
func (s Session) IsZero() bool { return s == Session{} }

// String formats the session as 32 hexadecimal digits, the format of [ParseSession].
func (s Session) String() string { return hex.EncodeToString(s[:]) }

// Short returns the first 8 digits, which distinguish sessions in a log.
func (s Session) Short() string { return hex.EncodeToString(s[:4]) }

// ParseSession parses exactly 32 hexadecimal digits, in
// either case. The zero Session is valid input: see [Session.IsZero].
func ParseSession(text string) (Session, error) {
	const op = "parse session"
	var s Session
	if err := checkHex(text, 2*len(s)); err != nil {
		return Session{}, &Error{Op: op, Kind: ErrInvalid, Subject: clip(text), Err: err}
	}
	if _, err := hex.Decode(s[:], []byte(text)); err != nil {
		return Session{}, &Error{Op: op, Kind: ErrInvalid, Subject: clip(text), Err: err}
	}
	return s, nil
}

// A Lease is the right of one owner to a range of keys. Leases with equal generations
// are parts of one grant: when a lease is split, the part that stays keeps the
// generation.
type Lease struct {
	Range      Range
	Generation Generation
}

// String formats the lease as "range@generation".
func (l Lease) String() string { return fmt.Sprintf("%v@%d", l.Range, l.Generation) }
