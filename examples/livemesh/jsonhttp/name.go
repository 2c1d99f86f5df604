package jsonhttp

import (
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
)

// MaxName is how many bytes a name may have: of a document, section, topic, queue or user.
const MaxName = 256

// ValidName refuses what is no name: messages and logs repeat it, and JSON cannot say what
// is not UTF-8. What it is the name of, "a queue" for instance, is for the error.
func ValidName(op, what, name string) error {
	if name != "" && len(name) <= MaxName && utf8.ValidString(name) {
		return nil
	}
	shown := name
	if len(shown) > 40 {
		shown = shown[:40] + "..."
	}
	return leasehold.Errorf(op, leasehold.Invalid, shown, "%s has a name of up to %d bytes of UTF-8", what, MaxName)
}
