package leasehold

import (
	"fmt"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// A Key is a point in the 64-bit key space of a namespace. Every key is owned
// by at most one owner at any time.
//
// Applications whose names have no order of their own use [KeyOf]; those with
// ordered 64-bit identifiers may use them as keys directly, and so keep
// neighbours together.
type Key uint64

// KeyOf hashes a name to its key: XXH64 with seed 0 over the bytes of name.
//
// The hash is part of the wire contract. It never changes, and every
// implementation in any language must agree with testdata/keyhash.tsv.
func KeyOf(name string) Key { return Key(xxhash.Sum64String(name)) }

// String writes the key as 16 hexadecimal digits, the form [ParseKey] reads.
func (k Key) String() string { return fmt.Sprintf("%016x", uint64(k)) }

// ParseKey reads a key written as exactly 16 hexadecimal digits, in either
// case. It does not hash: for the key of a name use [KeyOf].
func ParseKey(s string) (Key, error) {
	const op, digits = "parse key", 16
	if why := whyNotHex(s, digits); why != nil {
		return 0, &Error{Op: op, Kind: ErrInvalid, Subject: clip(s), Err: why}
	}
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0, &Error{Op: op, Kind: ErrInvalid, Subject: clip(s), Err: err}
	}
	return Key(v), nil
}

// whyNotHex says why s is not a number of exactly so many hexadecimal digits,
// and returns nil if it is one.
func whyNotHex(s string, digits int) error {
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
