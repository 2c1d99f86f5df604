package secret

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

const mask = "(secret)"

// A Text is a secret. The zero Text is no secret. It is immutable, and safe for concurrent
// use.
//
// A function returns the text, because packages that format structs do not call the methods
// of unexported fields, and some follow pointers. Of a function they format only the
// address.
type Text struct {
	reveal func() string
}

// New returns a secret, or the zero Text if the text is empty.
func New(text string) Text {
	if text == "" {
		return Text{}
	}
	return Text{func() string { return text }}
}

// Reveal returns the text of the secret, for code that verifies or sends it; "" if there is none.
func (t Text) Reveal() string {
	if t.reveal == nil {
		return ""
	}
	return t.reveal()
}

// Len returns the number of bytes of the secret; 0 if there is none.
func (t Text) Len() int { return len(t.Reveal()) }

// Equal reports whether two secrets are equal. Its duration depends only on their lengths.
func (t Text) Equal(other Text) bool {
	return subtle.ConstantTimeCompare([]byte(t.Reveal()), []byte(other.Reveal())) == 1
}

// String returns "(secret)", or "" if there is no secret.
func (t Text) String() string {
	if t.reveal == nil {
		return ""
	}
	return mask
}

// Format writes the result of String for every verb, including %x and %#v.
func (t Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue returns the result of String for logs.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText returns the result of String, for JSON, YAML and XML. There is no inverse.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalJSON returns the result of String as a JSON string.
func (t Text) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }
