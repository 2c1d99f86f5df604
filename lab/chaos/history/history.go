// Package history has the records of owners and callers in a chaos run. Owners write [oracle.Record]s,
// callers write [Event]s, one line of JSON each. All times are on one clock that the processes share.
package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/leaks"
)

// An Event is an observation or a request of a caller. At most one pointer is set; none is a heartbeat.
type Event struct {
	At     oracle.Time `json:"at"`
	Opened bool        `json:"opened,omitempty"` // the caller's lookup has its first table
	// Conservative: it reports everything as lost when contact is lost. Set with Opened.
	Conservative bool     `json:"conservative,omitempty"`
	Contact      *Contact `json:"contact,omitempty"`
	Table        *Table   `json:"table,omitempty"`
	Loss         *Loss    `json:"loss,omitempty"`
	Call         *Call    `json:"call,omitempty"`
	// Vitals is the resource usage of the caller.
	Vitals *leaks.Sample `json:"vitals,omitempty"`
}

// A Table is a lease table of a lookup.
type Table struct {
	LSN  leasehold.LSN `json:"lsn"`
	Hash uint64        `json:"hash"` // of its content
}

// A Contact is a change of a lookup's contact with the managers: lost or restored.
type Contact struct {
	Lost bool `json:"lost"`
}

// A Loss is a loss that a lookup has reported.
type Loss struct {
	Start      leasehold.Key        `json:"start"`
	Limit      leasehold.Key        `json:"limit"`
	Generation leasehold.Generation `json:"generation,omitempty"`
	Cause      leasehold.Cause      `json:"cause"`
	LSN        leasehold.LSN        `json:"lsn"`
}

// Range returns the lost range.
func (l *Loss) Range() leasehold.Range { return leasehold.Range{Start: l.Start, Limit: l.Limit} }

// A Call is a request for a register, from Began to the time of the event. An answered write has two events:
// one at its begin, without a generation, and one with its answer.
type Call struct {
	Began      oracle.Time          `json:"began"`
	Client     int                  `json:"client"`
	Write      bool                 `json:"write,omitempty"` // otherwise a read
	Name       string               `json:"name"`
	Value      string               `json:"value"`                // written or read
	Generation leasehold.Generation `json:"generation,omitempty"` // of the answer; 0 without an answer
}

// A Writer writes events, each with one call of Write. It is safe for concurrent use.
type Writer struct {
	mu sync.Mutex
	to io.Writer
}

// NewWriter returns a writer.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write writes an event. An error means that the reader has ended.
func (w *Writer) Write(e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.to.Write(append(line, '\n'))
	return err
}

// Read passes on events until the end of the input. A truncated last event is dropped: its writer was killed.
func Read(from io.Reader, observe func(Event)) error {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the history of a caller: %w", err)
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("reading the history of a caller: %q: %w", line, err)
		}
		observe(e)
	}
}

// Watched returns the names of the keys that owners check continuously. Callers use the first few as registers.
func Watched(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "key-" + strconv.Itoa(i)
	}
	return names
}

// Keys returns the keys of names.
func Keys(names []string) []leasehold.Key {
	keys := make([]leasehold.Key, len(names))
	for i, name := range names {
		keys[i] = leasehold.KeyOf(name)
	}
	return keys
}
