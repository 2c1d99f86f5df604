package secret

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

const mask = "(secret)"

// A Text is a secret. The zero Text is that there is none. It is immutable, and safe for
// concurrent use.
//
// The text is behind a function: packages that print the fields of a struct ask no methods
// of those that are not exported, and some follow pointers. Of a function there is only
// the address to print.
type Text struct {
	reveal func() string
}

// New returns a secret. That of "" is none.
func New(text string) Text {
	if text == "" {
		return Text{}
	}
	return Text{func() string { return text }}
}

// Reveal returns the secret itself: for whoever checks it or sends it to where it belongs.
func (t Text) Reveal() string {
	if t.reveal == nil {
		return ""
	}
	return t.reveal()
}

// Len returns how many bytes the secret has; 0 if there is none.
func (t Text) Len() int { return len(t.Reveal()) }

// Equal reports whether two secrets are the same. How long it takes says nothing about
// them but their lengths.
func (t Text) Equal(other Text) bool {
	return subtle.ConstantTimeCompare([]byte(t.Reveal()), []byte(other.Reveal())) == 1
}

// String returns "(secret)", or "" if there is none.
func (t Text) String() string {
	if t.reveal == nil {
		return ""
	}
	return mask
}

// Format writes what String returns, whatever the verb: %x and %#v, too.
func (t Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue is what a log has of it.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText writes what String returns, for JSON, YAML and XML. There is nothing that
// reads it back.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalJSON writes what String returns.
func (t Text) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }
