package jsonhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
)

// MaxName is how many bytes a name may have: of a document, section, topic, queue or user.
const MaxName = 256

// ValidName refuses what is no name: messages and logs repeat it, and JSON has only UTF-8.
// What it is the name of, "a queue" for instance, is for the error.
func ValidName(op, what, name string) error {
	if name != "" && len(name) <= MaxName && utf8.ValidString(name) {
		return nil
	}
	shown := name
	if len(shown) > 40 {
		shown = shown[:40] + "..."
	}
	return leasehold.Errorf(op, leasehold.ErrInvalid, shown, "%s has a name of up to %d bytes of UTF-8", what, MaxName)
}

// Read returns the body of a request. One that is longer than most bytes is refused with 413.
func (r *Request) Read(most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return nil, TooLarge(r.Name, "the request has more than %d bytes", most)
	}
	if err != nil {
		return nil, leasehold.Errorf("read request", leasehold.ErrInvalid, r.Name, "%w", err)
	}
	return body, nil
}

// Body is for [Mux.Handle]: it reads a request of up to most bytes, and decodes it for a
// function. Want says in errors what it should be.
func Body[In any](most int64, want string, answer func(r *Request, in In) (any, error)) func(*Request) (any, error) {
	return func(r *Request) (any, error) {
		data, err := r.Read(most)
		if err != nil {
			return nil, err
		}
		var in In
		if err := Decode(data, &in); err != nil {
			return nil, leasehold.Errorf("read request", leasehold.ErrInvalid, r.Name, "want %s as JSON: %w", want, err)
		}
		return answer(r, in)
	}
}

// Decode reads the one JSON value that data is. Unknown fields are refused: one that is
// misspelled would have no effect.
func Decode(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		if wrong.Field == "" {
			return fmt.Errorf("this is a JSON %s", wrong.Value) // the Go type is nothing to callers
		}
		return fmt.Errorf("%s cannot be a JSON %s", wrong.Field, wrong.Value)
	}
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("there is nothing")
	case err != nil:
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something comes after the JSON")
	}
	return nil
}
