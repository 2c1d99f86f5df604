// Package token is what the guards of all databases have in common: what they
// take for a resource and a generation, how they write a generation, and how
// they refuse one.
package token

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
)

// Op is the operation that errors name.
const Op = "fence"

// MaxResourceLen bounds the name of a resource, in bytes. An index of PostgreSQL
// takes some 2,700.
const MaxResourceLen = 1024

// width is the length of a generation in text: that of the longest, so that
// texts are in the order of their generations.
const width = 20

// Validate reports what is wrong with a resource or a generation.
func Validate(resource string, generation leasehold.Generation) error {
	switch {
	case resource == "" || len(resource) > MaxResourceLen:
		return leasehold.Errorf(Op, leasehold.ErrInvalid, clip(resource), "a resource has 1 to %d bytes, not %d: name what the lease is on", MaxResourceLen, len(resource))
	case !utf8.ValidString(resource) || strings.ContainsRune(resource, 0):
		return leasehold.Errorf(Op, leasehold.ErrInvalid, clip(resource), "a resource is UTF-8 without a zero byte: write other bytes in hexadecimal")
	case generation == 0 || generation > math.MaxInt64:
		return leasehold.Errorf(Op, leasehold.ErrInvalid, resource, "%d is not the generation of a lease: take it from owner.Check", generation)
	}
	return nil
}

// Format writes a generation so that later ones are greater as text, too.
func Format(generation leasehold.Generation) string {
	return fmt.Sprintf("%0*d", width, uint64(generation))
}

// Parse reads what Format wrote, and nothing else.
func Parse(text string) (leasehold.Generation, bool) {
	if len(text) != width || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return leasehold.Generation(n), err == nil
}

// Stale is the refusal of a generation because a later one is known.
func Stale(resource string, generation, known leasehold.Generation) error {
	return leasehold.Errorf(Op, leasehold.ErrStale, resource,
		"generation %d is older than %d: another owner has taken over, and nothing was written", generation, known)
}

// Unwritten is an error after which it is known that nothing was written.
func Unwritten(kind leasehold.Kind, resource string, err error) error {
	return leasehold.Errorf(Op, kind, resource, "nothing was written: %w", err)
}

// Unknown is an error after which it is not known whether something was written.
func Unknown(resource string, err error) error {
	return leasehold.Errorf(Op, leasehold.ErrIndeterminate, resource, "it may have been written, or not: %w", err)
}

// Alien is the refusal of a key that is no fence.
func Alien(resource, key string) error {
	return leasehold.Errorf(Op, leasehold.ErrInvalid, resource, "nothing was written: the key %q is no fence; choose a prefix that nobody else uses", key)
}

func clip(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}
