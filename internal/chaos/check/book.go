// Package check holds what owners and callers have written down against what
// Leasehold promises. Each promise has a file.
package check

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/chaos/history"
	"github.com/leasehold-dev/leasehold/internal/witness"
)

// A Violation is a promise that was broken, in one of the ways that there are.
type Violation struct {
	Invariant string `json:"invariant"` // I1 to I9 of docs/ARCHITECTURE.md
	Broken    string `json:"broken"`    // how
	Text      string `json:"text"`      // the first time
	Times     int    `json:"times"`
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s (%d times): %s", v.Invariant, v.Broken, v.Times, v.Text)
}

// Counts is how much was checked.
type Counts struct {
	Tenures     int `json:"tenures"`     // I1, I2: times for which a session held a key under a generation
	Losses      int `json:"losses"`      // I4: that a caller had to be told of
	Tables      int `json:"tables"`      // I5: that lookups have had
	Calls       int `json:"calls"`       // requests about registers that were answered
	Histories   int `json:"histories"`   // of a register under a generation, which were checked for being linearizable
	Generations int `json:"generations"` // I2
	Writes      int `json:"writes"`      // I9: that a database has accepted
	Refused     int `json:"refused"`     // and that it has not
}

// A Book keeps what owners and callers say. It may be written by many goroutines at
// once.
type Book struct {
	keys  []leasehold.Key
	stale time.Duration // within so much time a caller is told of a loss, or that it may have missed one

	mu      sync.Mutex
	oracle  *witness.Oracle
	tenures map[leasehold.Key][]tenure
	holders map[leasehold.Generation]holder
	callers []*Caller
	fences  map[string]leasehold.Generation // the newest that a database has accepted
	writes  Counts
	found   []Violation
}

// New returns a book about keys. The stale time is by when callers must have been told
// of losses.
func New(keys []leasehold.Key, stale time.Duration) *Book {
	return &Book{
		keys: keys, stale: stale, oracle: witness.NewOracle(len(keys)),
		tenures: make(map[leasehold.Key][]tenure), holders: make(map[leasehold.Generation]holder),
		fences: make(map[string]leasehold.Generation),
	}
}

// A Caller is what one process has written, from its start to its end.
type Caller struct {
	book   *Book
	name   string
	opened witness.Time // 0: not yet
	last   witness.Time // when it was last known to live
	losses []heard
	tables []history.Table
	calls  []call
}

type heard struct {
	at witness.Time
	history.Loss
}

type call struct {
	over witness.Time
	history.Call
}

// Caller begins the part of a process.
func (b *Book) Caller(name string) *Caller {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &Caller{book: b, name: name}
	b.callers = append(b.callers, c)
	return c
}

// Observe takes up what the process has written.
func (c *Caller) Observe(e history.Event) {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	c.last = max(c.last, e.At)
	switch {
	case e.Opened:
		c.opened = e.At
	case e.Loss != nil:
		c.losses = append(c.losses, heard{e.At, *e.Loss})
	case e.Table != nil:
		c.tables = append(c.tables, *e.Table)
	case e.Call != nil:
		c.calls = append(c.calls, call{e.At, *e.Call})
	}
}

// add notes a violation. The way in which a promise is broken is a few words; the text
// has the facts.
func (b *Book) add(invariant, broken, text string, args ...any) {
	i := slices.IndexFunc(b.found, func(v Violation) bool { return v.Invariant == invariant && v.Broken == broken })
	if i >= 0 {
		b.found[i].Times++
		return
	}
	b.found = append(b.found, Violation{invariant, broken, fmt.Sprintf(text, args...), 1})
}

// Violations judges everything that is in the book. Everybody who writes must have
// ended.
func (b *Book) Violations() ([]Violation, Counts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.writes
	found := b.found
	defer func() { b.found = found }() // so that it can be called again
	b.found = slices.Clone(found)
	b.judgeTenures(&n)
	b.judgeLosses(&n)
	b.judgeTables(&n)
	b.judgeRegisters(&n)
	return b.found, n
}

// Broken says whether something is known to be wrong, before everything is judged.
func (b *Book) Broken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.oracle.Judge().First != "" || len(b.found) > 0
}
