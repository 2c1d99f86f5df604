// Package check compares the records of owners and callers with the invariants. Each has a file.
//
// Complete records are judged and dropped during a run, so that memory does not grow with time.
package check

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
)

// A Violation is a kind of violation of an invariant.
type Violation struct {
	Invariant string `json:"invariant"` // I1 to I11 of docs/ARCHITECTURE.md, or "crash"
	Broken    string `json:"broken"`    // the kind
	Text      string `json:"text"`      // of the first one
	Times     int    `json:"times"`
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s (%d times): %s", v.Invariant, v.Broken, v.Times, v.Text)
}

// Counts are the numbers of checks.
type Counts struct {
	Tenures     int `json:"tenures"`     // I1, I2: periods in which a session held a key under a generation
	Losses      int `json:"losses"`      // I4: for each caller that must receive it
	Late        int `json:"late"`        // of these, received in time only with the slack
	Cuts        int `json:"cuts"`        // I4: periods in which a caller had to report lost contact
	Tables      int `json:"tables"`      // I5: of lookups
	Calls       int `json:"calls"`       // answered requests for registers
	Histories   int `json:"histories"`   // of a register under a generation, checked for linearizability
	Undecided   int `json:"undecided"`   // of these, the check took too long
	Generations int `json:"generations"` // I2
	Writes      int `json:"writes"`      // I9: accepted by a database
	Refused     int `json:"refused"`     // rejected by it
	Outages     int `json:"outages"`     // I11: of managers, store or network, without permitted losses
	Kept        int `json:"kept"`        // keys with the same lease after such an outage as before
	Reassigned  int `json:"reassigned"`  // keys that a leader has recalled and granted to another owner
}

// A Book has the records of owners and callers. It is safe for concurrent use.
type Book struct {
	keys  []leasehold.Key
	stale time.Duration // a caller receives a loss, or reports lost contact, within this time
	slack time.Duration // extra time on a loaded computer

	mu        sync.Mutex
	oracle    *oracle.Oracle
	tenures   map[leasehold.Key][]tenure      // not judged yet, and the last of each key
	holders   map[leasehold.Generation]holder // of all generations: none may be reused
	callers   []*Caller                       // running, or with records that are not judged yet
	cuts      []cut                           // not judged yet
	tables    map[leasehold.LSN]version
	registers map[string]*register
	fences    map[string]leasehold.Generation // the highest token that a database has accepted
	n         Counts
	found     []Violation
}

// New returns a book about keys. Callers must receive losses within stale plus slack.
func New(keys []leasehold.Key, stale, slack time.Duration) *Book {
	return &Book{
		keys: keys, stale: stale, slack: slack, oracle: oracle.New(len(keys)),
		tenures: make(map[leasehold.Key][]tenure), holders: make(map[leasehold.Generation]holder),
		tables: make(map[leasehold.LSN]version), registers: make(map[string]*register),
		fences: make(map[string]leasehold.Generation),
	}
}

// A Caller has the records of one process, from its start to its end.
type Caller struct {
	book   *Book
	name   string
	opened oracle.Time // 0: not yet
	last   oracle.Time // time of its last record
	gone   bool        // it has ended
	losses []receipt
	// conservative: it reports everything as lost when contact is lost.
	conservative bool
	contacts     []contact     // periods of lost contact, in order
	lsn          leasehold.LSN // of its last table
	// answered is the begin of the last answered request, by register.
	answered map[string]oracle.Time
}

// contact is a period of lost contact.
type contact struct {
	lost     oracle.Time
	restored oracle.Time // 0: not yet
}

type receipt struct {
	at oracle.Time
	history.Loss
}

type call struct {
	over oracle.Time
	history.Call
}

// Caller adds a process.
func (b *Book) Caller(name string) *Caller {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &Caller{book: b, name: name, answered: make(map[string]oracle.Time)}
	b.callers = append(b.callers, c)
	return c
}

// Observe adds a record of the process.
func (c *Caller) Observe(e history.Event) {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	c.last = max(c.last, e.At)
	switch {
	case e.Opened:
		c.opened, c.conservative = e.At, e.Conservative
	case e.Contact != nil && e.Contact.Lost:
		c.contacts = append(c.contacts, contact{lost: e.At})
	case e.Contact != nil && len(c.contacts) > 0:
		c.contacts[len(c.contacts)-1].restored = e.At
	case e.Loss != nil:
		c.losses = append(c.losses, receipt{e.At, *e.Loss})
	case e.Table != nil:
		c.judgeTable(e.At, *e.Table)
	case e.Call != nil:
		if e.Call.Generation != 0 {
			c.answered[e.Call.Name] = max(c.answered[e.Call.Name], e.Call.Began)
		}
		c.book.register(e.Call.Name).observe(call{e.At, *e.Call}, &c.book.n)
	}
}

// Gone records that the process has ended, and that all its records were observed.
func (c *Caller) Gone() {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	c.gone = true
}

// add records a violation. Broken is its kind, in a few words; the text has the facts.
func (b *Book) add(invariant, broken, text string, args ...any) {
	i := slices.IndexFunc(b.found, func(v Violation) bool { return v.Invariant == invariant && v.Broken == broken })
	if i >= 0 {
		b.found[i].Times++
		return
	}
	b.found = append(b.found, Violation{invariant, broken, fmt.Sprintf(text, args...), 1})
}

// Judge judges what was complete at a time, and drops it. All earlier records must have been observed.
func (b *Book) Judge(before oracle.Time) {
	b.mu.Lock()
	b.judgeLosses(before)
	b.judgeCuts(before)
	b.prune(before)
	maps.DeleteFunc(b.tables, func(_ leasehold.LSN, v version) bool { return v.at < before }) // all callers have newer ones
	ripe := b.ripe(before)
	b.mu.Unlock()
	verdicts := make([]porcupine.CheckResult, len(ripe))
	for i := range ripe { // without the lock, because it may take long
		verdicts[i] = ripe[i].check()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range ripe {
		b.judgeTenancy(&ripe[i], verdicts[i])
	}
}

// forever is later than all records.
const forever = math.MaxInt64

// Violations judges all remaining records. All writers must have ended.
func (b *Book) Violations() ([]Violation, Counts) {
	b.Judge(forever)
	b.mu.Lock()
	defer b.mu.Unlock()
	n, found := b.n, b.found
	defer func() { b.found = found }() // a later call repeats the verdict of the oracle
	b.found = slices.Clone(found)
	b.judgeTenures(&n)
	return b.found, n
}

// Broken reports whether a violation is known so far.
func (b *Book) Broken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.oracle.Judge().First != "" || len(b.found) > 0
}
