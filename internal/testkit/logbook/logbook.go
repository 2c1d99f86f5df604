// Package logbook records logs for tests.
package logbook

import (
	"log/slog"
	"strings"
	"sync"
)

// A Book is a log. It is safe for concurrent use. The zero value is empty.
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

// Clear removes all text.
func (b *Book) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}

// Logger returns a logger to the book, with one line of text per record.
func (b *Book) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// Lines returns the lines that contain all parts.
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
