// Package history is the records of owners and callers in a chaos run. Owners write [oracle.Record]s,
// callers write [Event]s, one line of JSON each. All times are on the clock that all processes share.
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

// An Event is what a caller has received or done. At most one pointer is set; none is a heartbeat.
type Event struct {
	At     oracle.Time `json:"at"`
	Opened bool        `json:"opened,omitempty"` // the caller's lookup has its first table
	// Conservative: it reports everything as lost when contact is. It comes with Opened.
	Conservative bool     `json:"conservative,omitempty"`
	Contact      *Contact `json:"contact,omitempty"`
	Table        *Table   `json:"table,omitempty"`
	Loss         *Loss    `json:"loss,omitempty"`
	Call         *Call    `json:"call,omitempty"`
	// Vitals is what the caller takes.
	Vitals *leaks.Sample `json:"vitals,omitempty"`
}

// A Table is a lease table that a lookup has had.
type Table struct {
	LSN  leasehold.LSN `json:"lsn"`
	Hash uint64        `json:"hash"` // of all that is in it
}

// A Contact is that a lookup has lost contact with the managers, or that it is restored.
type Contact struct {
	Lost bool `json:"lost"`
}

// A Loss is one that a lookup has reported.
type Loss struct {
	Start      leasehold.Key        `json:"start"`
	Limit      leasehold.Key        `json:"limit"`
	Generation leasehold.Generation `json:"generation,omitempty"`
	Cause      leasehold.Cause      `json:"cause"`
	LSN        leasehold.LSN        `json:"lsn"`
}

// Range is what was lost.
func (l *Loss) Range() leasehold.Range { return leasehold.Range{Start: l.Start, Limit: l.Limit} }

// A Call is a request about a register, from Began to the time of the event. A write that was answered is
// there twice: as it began, without a generation, and with its answer.
type Call struct {
	Began      oracle.Time          `json:"began"`
	Client     int                  `json:"client"`
	Write      bool                 `json:"write,omitempty"` // else it reads
	Name       string               `json:"name"`
	Value      string               `json:"value"`                // that was written, or read
	Generation leasehold.Generation `json:"generation,omitempty"` // under which it was answered; 0 if it was not
}

// A Writer writes events, each in one piece, from many goroutines at once.
type Writer struct {
	mu sync.Mutex
	to io.Writer
}

// NewWriter returns a writer.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write writes an event. If it cannot, whoever wants to know it is gone.
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

// Read passes on events until the writer is gone. A truncated last event is dropped: its writer was killed.
func Read(from io.Reader, observe func(Event)) error {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading what a caller did: %w", err)
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("reading what a caller did: %q: %w", line, err)
		}
		observe(e)
	}
}

// Watched are the names whose keys owners check continuously. Callers use the first few as registers.
func Watched(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "key-" + strconv.Itoa(i)
	}
	return names
}

// Keys are the keys of names.
func Keys(names []string) []leasehold.Key {
	keys := make([]leasehold.Key, len(names))
	for i, name := range names {
		keys[i] = leasehold.KeyOf(name)
	}
	return keys
}
