// Package check compares the records of owners and callers with the invariants. Each has a file.
//
// What is certainly over is judged and dropped during a run, so that memory does not grow with time.
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

// A Violation is a promise that was broken, in one of the ways that there are.
type Violation struct {
	Invariant string `json:"invariant"` // I1 to I11 of docs/ARCHITECTURE.md, or "crash"
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
	Late        int `json:"late"`        // and of which it was told in time only with the slack
	Cuts        int `json:"cuts"`        // I4: times that a caller had to say that it knew nothing any more
	Tables      int `json:"tables"`      // I5: that lookups have had
	Calls       int `json:"calls"`       // requests about registers that were answered
	Histories   int `json:"histories"`   // of a register under a generation, which were checked for being linearizable
	Undecided   int `json:"undecided"`   // and of these so many took too long to be checked
	Generations int `json:"generations"` // I2
	Writes      int `json:"writes"`      // I9: that a database has accepted
	Refused     int `json:"refused"`     // and that it has not
	Outages     int `json:"outages"`     // I11: of managers, store or network, in which nothing may be lost
	Kept        int `json:"kept"`        // keys that had the same lease after such an outage as before
	Reassigned  int `json:"reassigned"`  // and keys that a leader has recalled and granted to another owner
}

// A Book keeps the records of owners and callers, from many goroutines at once.
type Book struct {
	keys  []leasehold.Key
	stale time.Duration // within so much time a caller is told of a loss, or that it may have missed one
	slack time.Duration // and by so much later, for want of processors

	mu        sync.Mutex
	oracle    *oracle.Oracle
	tenures   map[leasehold.Key][]tenure      // that are not judged yet, and the last of each key
	holders   map[leasehold.Generation]holder // of all there ever were: none may come again
	callers   []*Caller                       // that live, or whose time is not judged yet
	cuts      []cut                           // that are not judged yet
	tables    map[leasehold.LSN]version
	registers map[string]*register
	fences    map[string]leasehold.Generation // the newest that a database has accepted
	n         Counts
	found     []Violation
}

// New returns a book about keys. Callers must receive losses within stale, and slack.
func New(keys []leasehold.Key, stale, slack time.Duration) *Book {
	return &Book{
		keys: keys, stale: stale, slack: slack, oracle: oracle.New(len(keys)),
		tenures: make(map[leasehold.Key][]tenure), holders: make(map[leasehold.Generation]holder),
		tables: make(map[leasehold.LSN]version), registers: make(map[string]*register),
		fences: make(map[string]leasehold.Generation),
	}
}

// A Caller is what one process has written, from its start to its end.
type Caller struct {
	book   *Book
	name   string
	opened oracle.Time // 0: not yet
	last   oracle.Time // when it was last known to live
	gone   bool        // it says nothing any more
	losses []heard
	// conservative: it reports everything as lost when contact is.
	conservative bool
	contacts     []contact     // that were lost, in order
	lsn          leasehold.LSN // of the last table that it had
	// answered is when it last asked each register that has answered.
	answered map[string]oracle.Time
}

// contact is a time in which a caller has no contact.
type contact struct {
	lost     oracle.Time
	restored oracle.Time // 0: not yet
}

type heard struct {
	at oracle.Time
	history.Loss
}

type call struct {
	over oracle.Time
	history.Call
}

// Caller begins the part of a process.
func (b *Book) Caller(name string) *Caller {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &Caller{book: b, name: name, answered: make(map[string]oracle.Time)}
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
		c.opened, c.conservative = e.At, e.Conservative
	case e.Contact != nil && e.Contact.Lost:
		c.contacts = append(c.contacts, contact{lost: e.At})
	case e.Contact != nil && len(c.contacts) > 0:
		c.contacts[len(c.contacts)-1].restored = e.At
	case e.Loss != nil:
		c.losses = append(c.losses, heard{e.At, *e.Loss})
	case e.Table != nil:
		c.judgeTable(e.At, *e.Table)
	case e.Call != nil:
		if e.Call.Generation != 0 {
			c.answered[e.Call.Name] = max(c.answered[e.Call.Name], e.Call.Began)
		}
		c.book.register(e.Call.Name).observe(call{e.At, *e.Call}, &c.book.n)
	}
}

// Gone says that the process has ended, and that all it has written was observed.
func (c *Caller) Gone() {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	c.gone = true
}

// add notes a violation. Broken is its kind, in a few words; the text has the facts.
func (b *Book) add(invariant, broken, text string, args ...any) {
	i := slices.IndexFunc(b.found, func(v Violation) bool { return v.Invariant == invariant && v.Broken == broken })
	if i >= 0 {
		b.found[i].Times++
		return
	}
	b.found = append(b.found, Violation{invariant, broken, fmt.Sprintf(text, args...), 1})
}

// Settle judges what was over at a time, and drops it. All earlier records must have been observed.
func (b *Book) Settle(before oracle.Time) {
	b.mu.Lock()
	b.settleLosses(before)
	b.settleCuts(before)
	b.forget(before)
	maps.DeleteFunc(b.tables, func(_ leasehold.LSN, v version) bool { return v.at < before }) // all callers are beyond them
	ripe := b.ripe(before)
	b.mu.Unlock()
	verdicts := make([]porcupine.CheckResult, len(ripe))
	for i := range ripe { // it may take a while, and owners are not to wait for it
		verdicts[i] = ripe[i].check()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range ripe {
		b.judgeTenancy(&ripe[i], verdicts[i])
	}
}

// forever is after everything.
const forever = math.MaxInt64

// Violations judges all that is left in the book. All writers must have ended.
func (b *Book) Violations() ([]Violation, Counts) {
	b.Settle(forever)
	b.mu.Lock()
	defer b.mu.Unlock()
	n, found := b.n, b.found
	defer func() { b.found = found }() // the oracle says the same when it is asked again
	b.found = slices.Clone(found)
	b.judgeTenures(&n)
	return b.found, n
}

// Broken says whether something is known to be wrong, before everything is judged.
func (b *Book) Broken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.oracle.Judge().First != "" || len(b.found) > 0
}
