package cli

import (
	"strings"
	"testing"
	"time"
)

func TestParseSince(t *testing.T) {
	zone := time.FixedZone("here", 3600)
	now := time.Date(2026, 11, 15, 10, 20, 30, 0, zone)
	for text, want := range map[string]time.Time{
		"":                     {},
		"90m":                  now.Add(-90 * time.Minute),
		"36h":                  now.Add(-36 * time.Hour),
		"7d":                   time.Date(2026, 11, 8, 10, 20, 30, 0, zone),
		"2026-11-10":           time.Date(2026, 11, 10, 0, 0, 0, 0, zone),
		"2026-11-10 23:59":     time.Date(2026, 11, 10, 23, 59, 0, 0, zone),
		"2026-11-10T23:59:00Z": time.Date(2026, 11, 10, 23, 59, 0, 0, time.UTC),
		"09:15":                time.Date(2026, 11, 15, 9, 15, 0, 0, zone),
	} {
		if got, err := ParseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"tuesday": "want a time ago such as 90m",
		"-1h":     "want a time ago",
		"0s":      "want a time ago",
		"0d":      "want a time ago",
		"1.5d":    "want a time ago",
		"99999d":  "want a time ago",
		"11:00":   "the time is in the future",
	} {
		if _, err := ParseSince(text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzSince: a start time is never in the future, and an explicit time is parsed as such.
func FuzzSince(f *testing.F) {
	for _, text := range []string{"90m", "36h", "-1h", "0s", "2026-11-15", "2026-11-15 10:20", "10:20", "23:59:59", "0000-01-01", "9999-12-31", "292y", "2562047h", "0000-06-01T00:00:00Z", "24:00", ""} {
		f.Add(text)
	}
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		at, err := ParseSince(text, now)
		switch {
		case err != nil || text == "":
		case at.After(now):
			t.Fatalf("%q is parsed as %v, which is in the future", text, at)
		case strings.HasPrefix(text, "0000-") && at.Year() != 0:
			t.Fatalf("%q is parsed as %v", text, at)
		}
	})
}
