package admin

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Seconds is a duration, in JSON a number of seconds.
type Seconds time.Duration

// MarshalJSON is for encoding/json.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// UnmarshalJSON is for encoding/json.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	var seconds float64
	if err := json.Unmarshal(text, &seconds); err != nil {
		return err
	}
	*s = Seconds(seconds * float64(time.Second))
	return nil
}

// IsZero is for the option omitzero.
func (s Seconds) IsZero() bool { return s == 0 }

// An Interval is a range of keys, in JSON "start" and "limit".
type Interval struct {
	Start Point `json:"start"`
	Limit Limit `json:"limit"` // the first key outside
}

// Keys returns the interval as a range.
func (i Interval) Keys() leasehold.Range {
	return leasehold.Range{Start: leasehold.Key(i.Start), Limit: leasehold.Key(i.Limit)}
}

// Share returns the interval's share of the key space, 0 to 1.
func (i Interval) Share() float64 { return shareOf(i.Keys()) }

func shareOf(r leasehold.Range) float64 { return float64(r.Size()) / (1 << 64) }

func intervalOf(start, limit uint64) Interval { return Interval{Point(start), Limit(limit)} }

func leaseInterval(l *leaseholdv1.Lease) Interval { return intervalOf(l.GetStart(), l.GetLimit()) }

// A Point is a key, in JSON 16 hexadecimal digits.
type Point leasehold.Key

func (p Point) String() string { return leasehold.Key(p).String() }

// MarshalText is for encoding/json.
func (p Point) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is for encoding/json.
func (p *Point) UnmarshalText(text []byte) error {
	key, err := leasehold.ParseKey(string(text))
	*p = Point(key)
	return err
}

// A Limit is the first key after a range, 0 at the end of the key space, in JSON "end".
type Limit leasehold.Key

const endOfKeys = "end"

// MarshalText is for encoding/json.
func (l Limit) MarshalText() ([]byte, error) {
	if l == 0 {
		return []byte(endOfKeys), nil
	}
	return Point(l).MarshalText()
}

// UnmarshalText is for encoding/json.
func (l *Limit) UnmarshalText(text []byte) error {
	*l = 0
	if string(text) == endOfKeys {
		return nil
	}
	return (*Point)(l).UnmarshalText(text)
}

// convert converts a list. The result is not nil: the JSON of an empty list is [].
func convert[P, T any](list []P, one func(P) T) []T {
	out := make([]T, len(list))
	for i, p := range list {
		out[i] = one(p)
	}
	return out
}

// enumName is the name of an enum's value without its prefix, in lower case. A value that only a
// newer version has is its number.
func enumName(value interface{ String() string }, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(value.String(), prefix))
}

// optionalName is enumName, with "" for the value that is not specified.
func optionalName(value interface{ String() string }, prefix string) string {
	if name := enumName(value, prefix); name != "unspecified" {
		return name
	}
	return ""
}

func sessionOf(h *leaseholdv1.Holder) string { return hex.EncodeToString(h.GetSession()) }
