package leasemap

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// Config says what a map holds and for how long. The zero Config is good.
type Config[V any] struct {
	// TTL is for how long a value lasts that is neither changed nor touched. Zero is
	// for ever, and is not allowed with Weak.
	TTL time.Duration
	// Max bounds how many names the map holds. Default 1 million.
	Max int

	// Key returns the key of a name. Callers must use the same. Default
	// [leasehold.KeyOf].
	Key func(name string) leasehold.Key

	// Encode and Decode turn a value into what is sent to another server, and back.
	// Encode appends to dst; a value takes at most 4 MiB with its name. Both are called
	// from many goroutines, and by servers of different versions of the application.
	// Default: JSON, which leaves out fields that are not exported and replaces what is
	// not UTF-8 in strings. A value that cannot be encoded keeps its range from moving, and
	// has it lost at Close: the owner's log, and Close, name it.
	Encode func(dst []byte, v *V) ([]byte, error)
	Decode func(data []byte, v *V) error

	// Weak prefers availability: see the package's documentation.
	Weak bool
}

const (
	opNew     = "new map"
	opGet     = "get"
	opUpdate  = "update"
	usualMax  = 1_000_000
	maxRecord = 4 << 20
)

func (c *Config[V]) validate() error {
	c.Max = cmp.Or(c.Max, usualMax)
	if c.Key == nil {
		c.Key = leasehold.KeyOf
	}
	switch {
	case c.Max < 0 || c.TTL < 0:
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "Max is %d and TTL %v: neither may be negative", c.Max, c.TTL)
	case (c.Encode == nil) != (c.Decode == nil):
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "Encode and Decode go together: set both or neither")
	case c.Weak && c.TTL == 0:
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "a weak map keeps what it no longer owns until that expires: set TTL")
	}
	if c.Encode == nil {
		c.Encode = func(dst []byte, v *V) ([]byte, error) { return appendJSON(dst, v) }
		c.Decode = func(data []byte, v *V) error { return json.Unmarshal(data, v) }
	}
	return nil
}

// appendJSON writes a value as it is: what is escaped for HTML would be up to six times as
// long, and a value that the application takes for short enough would not be.
func appendJSON(dst []byte, v any) ([]byte, error) {
	buffer := bytes.NewBuffer(dst)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return buffer.Bytes(), err
}
