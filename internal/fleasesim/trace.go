package fleasesim

import (
	"fmt"
	"io"
)

// A trace is what happened: as a hash, always, and as text, if someone reads.
type trace struct {
	hash uint64
	text io.Writer
}

// mix makes the hash depend on two numbers.
func (t *trace) mix(a, b uint64) {
	t.hash = (t.hash ^ a) * 0x100000001b3
	t.hash = (t.hash ^ b ^ t.hash>>29) * 0x9e3779b97f4a7c15
}

// printf writes a line.
func (t *trace) printf(now int64, format string, args ...any) {
	if t.text != nil {
		// Who reads may have gone; that changes nothing in the world.
		_, _ = fmt.Fprintf(t.text, "%12.6f  %s\n", seconds(now), fmt.Sprintf(format, args...))
	}
}

// seconds is a time in seconds since the start of the world.
func seconds(t int64) float64 { return float64(t-worldStart) / 1e9 }
