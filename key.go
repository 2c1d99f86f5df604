package leasehold

import (
	"fmt"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// A Key is a point in the 64-bit key space of a namespace. Every key has
// at most one owner at any time.
//
// Applications with unordered names use [KeyOf]. Applications with
// ordered 64-bit identifiers may use them as keys, so that neighbors are in one range.
type Key uint64

// KeyOf hashes a name to its key: XXH64 with seed 0 over the bytes of name.
//
// The hash is part of the wire protocol and never changes. Implementations in all
// languages must agree with testdata/keyhash.tsv.
func KeyOf(name string) Key { return Key(xxhash.Sum64String(name)) }

// String formats the key as 16 hexadecimal digits, the format of [ParseKey].
func (k Key) String() string { return fmt.Sprintf("%016x", uint64(k)) }

// ParseKey parses exactly 16 hexadecimal digits, in either case. It does not hash: for the
// key of a name use [KeyOf].
func ParseKey(s string) (Key, error) {
	const op, digits = "parse key", 16
	if err := checkHex(s, digits); err != nil {
		return 0, &Error{Op: op, Kind: ErrInvalid, Subject: clip(s), Err: err}
	}
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0, &Error{Op: op, Kind: ErrInvalid, Subject: clip(s), Err: err}
	}
	return Key(v), nil
}

// checkHex returns an error unless s has exactly this number of hexadecimal digits, and
// no other characters.
func checkHex(s string, digits int) error {
	if len(s) != digits {
		return fmt.Errorf("want %d hexadecimal digits, have %d bytes", digits, len(s))
	}
	for i, c := range s {
		digit := '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
		if !digit {
			return fmt.Errorf("want %d hexadecimal digits, have %q at position %d", digits, c, i)
		}
	}
	return nil
}
