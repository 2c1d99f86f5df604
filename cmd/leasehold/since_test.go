package main

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
		if got, err := parseSince(text, now); err != nil || !got.Equal(want) {
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
		"11:00":   "that is yet to come",
	} {
		if _, err := parseSince(text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
