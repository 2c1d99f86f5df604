package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// timeLayouts are how a time may be written; without a zone it is the reader's own.
var timeLayouts = [...]string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "15:04:05", "15:04"}

const SinceHelp = "only what happened since: a `time` ago such as 90m, 36h or 7d, or a time such as 2026-11-15, \"2026-11-15 10:20\" or 10:20"

// ParseSince reads how far back somebody wants to look: for a duration before now, or
// from a time on. A time of day is of today. "" is the zero time: all there is.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	if days, found := strings.CutSuffix(text, "d"); found {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil && n > 0 {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	for _, layout := range timeLayouts {
		at, err := time.ParseInLocation(layout, text, now.Location())
		if err != nil {
			continue
		}
		if strings.HasPrefix(layout, "15:") { // a time of day
			at = time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), 0, now.Location())
		}
		if at.After(now) {
			return time.Time{}, fmt.Errorf("--since %q: that is yet to come", text)
		}
		return at, nil
	}
	return time.Time{}, fmt.Errorf("--since %q: want a time ago such as 90m, 36h or 7d, or a time such as 2026-11-15 or \"2026-11-15 10:20\"", text)
}
