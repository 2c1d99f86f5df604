// Package logbook keeps what was logged, for tests that look at it.
package logbook

import (
	"log/slog"
	"strings"
	"sync"
)

// A Book can be read while it is written. Its zero value is empty.
type Book struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *Book) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *Book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Clear forgets all of it.
func (b *Book) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}

// Logger writes into it, a line of text for each record.
func (b *Book) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// Lines are those lines that have all of the parts.
func (b *Book) Lines(parts ...string) (found []string) {
next:
	for line := range strings.Lines(b.String()) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}
