// Package token has the common code of the guards of all databases: validation of resources
// and generations, the text form of a generation, and errors.
package token

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
)

// Op is the operation of errors.
const Op = "fence"

// MaxResourceLen bounds the name of a resource, in bytes. PostgreSQL's indexes permit about
// 2,700.
const MaxResourceLen = 1024

// width is the constant length of a generation in text, so that texts sort like generations.
const width = 20

// Validate returns an error for an invalid resource or generation.
func Validate(resource string, generation leasehold.Generation) error {
	switch {
	case resource == "" || len(resource) > MaxResourceLen:
		return leasehold.Errorf(Op, leasehold.ErrInvalid, clip(resource), "a resource has 1 to %d bytes, not %d: use the name of the lease's key", MaxResourceLen, len(resource))
	case !utf8.ValidString(resource) || strings.ContainsRune(resource, 0):
		return leasehold.Errorf(Op, leasehold.ErrInvalid, clip(resource), "a resource is UTF-8 without a zero byte: encode other bytes in hexadecimal")
	case generation == 0 || generation > math.MaxInt64:
		return leasehold.Errorf(Op, leasehold.ErrInvalid, resource, "%d is not the generation of a lease: take it from owner.Check", generation)
	}
	return nil
}

// Format formats a generation so that texts sort like generations.
func Format(generation leasehold.Generation) string {
	return fmt.Sprintf("%0*d", width, uint64(generation))
}

// Parse parses only texts of Format.
func Parse(text string) (leasehold.Generation, bool) {
	if len(text) != width || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return leasehold.Generation(n), err == nil
}

// Stale is the error of a generation that is older than the stored one.
func Stale(resource string, generation, known leasehold.Generation) error {
	return leasehold.Errorf(Op, leasehold.ErrStale, resource,
		"generation %d is older than %d: another owner has taken over, and nothing was written", generation, known)
}

// Unwritten is the error of a write that did not happen.
func Unwritten(kind leasehold.Kind, resource string, err error) error {
	return leasehold.Errorf(Op, kind, resource, "nothing was written: %w", err)
}

// Unknown is the error of a write that may have happened.
func Unknown(resource string, err error) error {
	return leasehold.Errorf(Op, leasehold.ErrIndeterminate, resource, "it may have been written: %w", err)
}

// Alien is the error of a key that has another value than a fence.
func Alien(resource, key string) error {
	return leasehold.Errorf(Op, leasehold.ErrInvalid, resource, "nothing was written: the key %q is not a fence; choose an unused prefix", key)
}

func clip(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}
