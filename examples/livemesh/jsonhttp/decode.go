package jsonhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Decode reads the one JSON value that data is. What nobody knows is refused: a field that
// is misspelled would have no effect, and nobody would notice.
func Decode(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		if wrong.Field == "" {
			return fmt.Errorf("this is a JSON %s", wrong.Value) // of which Go type it should be is nothing to callers
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
