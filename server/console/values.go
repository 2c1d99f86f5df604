package console

import (
	"fmt"
	"math/big"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// Grouped writes a number with commas between its thousands.
func Grouped(n uint64) string { return humanize.BigComma(new(big.Int).SetUint64(n)) }

// Counted writes a number and its noun: 1 world, 2 worlds.
func Counted(n int, noun string) string {
	return Grouped(uint64(max(n, 0))) + " " + english.PluralWord(n, noun, "")
}

// Shown makes what a manager sent fit for a terminal: nothing in it can move
// the cursor or colour what follows.
func Shown(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// OrDash is what a cell shows that has nothing to say.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return Shown(s)
}

// Brief writes a duration with as much precision as people want: 350ms, 4.2s,
// 3m20s, 2h13m, 5d2h.
func Brief(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return trimZeros(d.Round(time.Second).String())
	case d < day:
		return trimZeros(d.Round(time.Minute).String())
	}
	d = d.Round(time.Hour)
	return trimZeros(fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour))
}

// trimZeros takes the parts off the end of a duration that are zero.
func trimZeros(s string) string {
	for _, part := range []string{"0s", "0m", "0h"} {
		if rest, found := strings.CutSuffix(s, part); found && rest != "" && !unicode.IsDigit(rune(rest[len(rest)-1])) {
			s = rest
		}
	}
	return s
}

// Percent writes a share of 0 to 1.
func Percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }
