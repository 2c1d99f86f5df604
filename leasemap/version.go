package leasemap

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// String writes a version as text, and "none" for the one of no value.
func (v Version) String() string {
	if !v.Exists() {
		return "none"
	}
	return fmt.Sprintf("%d.%d", v.Generation, v.Number)
}

// MarshalText writes a version so that it can be sent to callers, as an ETag for instance;
// the one of no value is empty.
func (v Version) MarshalText() ([]byte, error) {
	if !v.Exists() {
		return nil, nil
	}
	return []byte(v.String()), nil
}

// UnmarshalText reads what MarshalText has written, and nothing else: callers compare versions
// as text, too.
func (v *Version) UnmarshalText(text []byte) error {
	*v = Version{}
	if len(text) == 0 {
		return nil
	}
	generation, number, _ := strings.Cut(string(text), ".")
	g, err := strconv.ParseUint(generation, 10, 64)
	n, err2 := strconv.ParseUint(number, 10, 64)
	read := Version{leasehold.Generation(g), n}
	if err != nil || err2 != nil || read.String() != string(text) {
		return leasehold.Errorf("parse version", leasehold.ErrInvalid, string(text), "want a version as it was given out, 5.17 for instance")
	}
	*v = read
	return nil
}
