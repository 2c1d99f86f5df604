package leasemap

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// Config configures a map. The zero Config is valid.
type Config[V any] struct {
	// TTL is the time after which a value expires that is neither changed nor touched. Zero
	// means that values do not expire, and is invalid with Weak.
	TTL time.Duration
	// Max limits the number of names. Default 1 million.
	Max int

	// Key returns the key of a name. Callers must use the same function. Default
	// [leasehold.KeyOf].
	Key func(name string) leasehold.Key

	// Encode and Decode convert a value for the move to another server.
	// Encode appends to dst; name and value are at most 4 MiB. Both must be safe for
	// concurrent use, and compatible between the versions of the application.
	// Default: JSON, which omits unexported fields and replaces invalid
	// UTF-8 in strings. A value that cannot be encoded prevents its range from moving, and
	// the range is lost at Close, which returns an error. The owner's log contains the name.
	Encode func(dst []byte, v *V) ([]byte, error)
	Decode func(data []byte, v *V) error

	// Weak prefers availability: see the package's documentation.
	Weak bool
}

const (
	opNew      = "new map"
	opGet      = "get"
	opUpdate   = "update"
	defaultMax = 1_000_000
	maxRecord  = 4 << 20 // bytes
)

func (c *Config[V]) validate() error {
	c.Max = cmp.Or(c.Max, defaultMax)
	if c.Key == nil {
		c.Key = leasehold.KeyOf
	}
	switch {
	case c.Max < 0 || c.TTL < 0:
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "Max is %d and TTL %v: want 0 or more", c.Max, c.TTL)
	case (c.Encode == nil) != (c.Decode == nil):
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "only one of Encode and Decode is set: set both or neither")
	case c.Weak && c.TTL == 0:
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "TTL is 0 in a weak map, which keeps values of names that it does not own until they expire: set TTL")
	}
	if c.Encode == nil {
		c.Encode = func(dst []byte, v *V) ([]byte, error) { return appendJSON(dst, v) }
		c.Decode = func(data []byte, v *V) error { return json.Unmarshal(data, v) }
	}
	return nil
}

// appendJSON encodes without HTML escapes, which make a value up to six times as long, and
// possibly longer than maxRecord.
func appendJSON(dst []byte, v any) ([]byte, error) {
	buffer := bytes.NewBuffer(dst)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return buffer.Bytes(), err
}
