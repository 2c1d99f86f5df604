package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"

	"github.com/leasehold-dev/leasehold"
)

// What commands print for programs follows one rule: numbers that are names
// rather than amounts (keys, sessions, generations, terms, LSNs, ids) are strings,
// because many readers of JSON keep only 53 bits of a number. Fields may be
// added; none is renamed or removed.

// WriteLine writes a document as one line of JSON, for commands that print many.
func WriteLine(out io.Writer, document any) error {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		panic(err) // numbers, strings, and lists and structs of them
	}
	return Write(out, line.String())
}

// ShareOf is the share of the key space that a range has.
func ShareOf(r leasehold.Range) float64 { return float64(r.Size()) / (1 << 64) }

func Decimal(n uint64) string { return strconv.FormatUint(n, 10) }
