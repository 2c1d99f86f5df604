package lookup

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// cells is the number of parts of the key space in the histories below.
const cells = 8

func cell(from, to int) leasehold.Range {
	const width = (1 << 63) / cells * 2
	return leasehold.Range{Start: leasehold.Key(from) * width, Limit: leasehold.Key(to%cells) * width}
}

// drawHistory draws a history of grants and losses.
func drawHistory(t *rapid.T) ([]table.Change, []*table.Table) {
	now := table.New()
	tables := []*table.Table{now}
	var changes []table.Change
	for range rapid.IntRange(1, 60).Draw(t, "changes") {
		from := rapid.IntRange(0, cells-1).Draw(t, "from")
		r := cell(from, rapid.IntRange(from+1, cells).Draw(t, "to"))
		around, e := now.At(r.Start)
		r, _ = r.Intersect(around)
		c := table.Change{LSN: now.LSN() + 1, Range: r, Generation: e.Generation, Holder: e.Holder, Kind: table.Vacated, Cause: leasehold.CauseExpired}
		if e.Vacant() {
			c.Kind, c.Generation = table.Granted, now.Newest()+1
			c.Holder = &table.Holder{Owner: leasehold.OwnerID(rapid.StringMatching("[ab]").Draw(t, "owner"))}
		}
		now = now.Clone()
		if err := now.Apply(&c); err != nil {
			t.Fatal(err)
		}
		changes, tables = append(changes, c), append(tables, now)
	}
	return changes, tables
}

// A reader receives every loss, and no range that was not lost, for any length of the log, any mix of
// changes and snapshots, and any number of times that it stops and resumes from the last handled loss.
func TestReaderMissesNoLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		changes, tables := drawHistory(t)
		keep := rapid.IntRange(1, 5).Draw(t, "keep")
		out, log := newOutbox(keep), newLossLog(keep)
		opened := rapid.IntRange(0, len(changes)).Draw(t, "opened")
		log.append(update{table: tables[opened]})

		since := leasehold.LSN(rapid.IntRange(0, opened).Draw(t, "since"))
		at, last, resume := log.since(since), since, false
		var received []leasehold.Loss
		read := func() {
			if resume {
				at, resume = log.since(last), false
			}
			batch, _ := log.read(&at)
			for _, loss := range batch {
				if loss.LSN <= last || loss.Resume != loss.LSN && loss.Resume != loss.LSN-1 {
					t.Fatalf("%v with resume %d follows lsn %d", loss, loss.Resume, last)
				}
				checkRecorded(t, changes, loss)
				received, last = append(received, loss), loss.Resume
				if rapid.IntRange(0, 3).Draw(t, "stop") == 0 {
					resume = true
					return
				}
			}
		}
		for lsn := opened; lsn < len(changes); {
			next := rapid.IntRange(lsn+1, len(changes)).Draw(t, "next")
			if rapid.Bool().Draw(t, "snapshot") {
				out.put(tables[next], inOrder(skipped(tables[lsn], tables[next])), nil)
			} else {
				out.put(tables[next], inOrder(lossesOf(changes[lsn:next])), nil)
			}
			lsn = next
			if rapid.Bool().Draw(t, "publish") {
				log.append(out.takeOr(tables[lsn]))
			}
			if rapid.Bool().Draw(t, "read") {
				read()
			}
		}
		log.append(out.takeOr(tables[len(changes)]))
		for before := -1; before < len(received) || resume; {
			before = len(received)
			read()
		}
		for _, loss := range lossesOf(changes) {
			if loss.LSN > since {
				checkReceived(t, received, loss)
			}
		}
	})
}

// takeOr is take with a default for the table.
func (o *outbox) takeOr(current *table.Table) update {
	u := o.take()
	if u.table == nil {
		u.table = current
	}
	return u
}

// checkReceived checks that the reader has received every key of a loss, with its LSN or a later one.
func checkReceived(t *rapid.T, received []leasehold.Loss, loss leasehold.Loss) {
	for i := range cells {
		key := cell(i, i+1).Start
		if !loss.Range.Contains(key) {
			continue
		}
		if !slices.ContainsFunc(received, func(r leasehold.Loss) bool { return r.LSN >= loss.LSN && r.Range.Contains(key) }) {
			t.Fatalf("key %v of %v is missing: %v", key, loss, received)
		}
	}
}

// checkRecorded checks that a loss is part of the loss that its change records.
func checkRecorded(t *rapid.T, changes []table.Change, loss leasehold.Loss) {
	if c := &changes[loss.LSN-1]; c.Kind != table.Vacated || !c.Range.Covers(loss.Range) {
		t.Fatalf("%v is reported, but the change is %v", loss, c)
	}
}

func lossesOf(changes []table.Change) []leasehold.Loss {
	var losses []leasehold.Loss
	for i := range changes {
		if loss, lost := changes[i].Loss(); lost {
			losses = append(losses, loss)
		}
	}
	return losses
}

// skipped returns the losses between two tables in the order of keys, as the machine does.
func skipped(old, now *table.Table) []leasehold.Loss {
	var losses []leasehold.Loss
	for r, e := range now.All() {
		for part, before := range old.Within(r) {
			if e.Lost > old.LSN() {
				loss := leasehold.Loss{Range: part, Generation: before.Generation, LSN: e.Lost}
				if !before.Vacant() {
					loss.Owner = before.Holder.Owner
				}
				losses = append(losses, loss)
			}
		}
	}
	return losses
}

func TestInOrder(t *testing.T) {
	loss := func(from, to int, owner leasehold.OwnerID, lsn leasehold.LSN) leasehold.Loss {
		return leasehold.Loss{Range: cell(from, to), Owner: owner, LSN: lsn}
	}
	resume := func(loss leasehold.Loss, lsn leasehold.LSN) leasehold.Loss {
		loss.Resume = lsn
		return loss
	}
	for _, c := range []struct {
		name       string
		have, want []leasehold.Loss
	}{
		{"empty", nil, nil},
		{
			"sorted by lsn",
			[]leasehold.Loss{loss(0, 1, "a", 3), loss(1, 2, "b", 2)},
			[]leasehold.Loss{resume(loss(1, 2, "b", 2), 2), resume(loss(0, 1, "a", 3), 3)},
		},
		{
			"one lsn, with a range between that was not lost",
			[]leasehold.Loss{loss(5, 8, "a", 3), loss(0, 1, "a", 3), loss(2, 3, "b", 3)},
			[]leasehold.Loss{resume(loss(0, 1, "a", 3), 2), resume(loss(2, 3, "b", 3), 2), resume(loss(5, 8, "a", 3), 3)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, inOrder(c.have)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// lookupAt returns a lookup without a machine.
func lookupAt(t *table.Table) *Lookup {
	l := &Lookup{}
	l.current.Store(newSnapshot(t))
	return l
}

// tableOf returns a table of n ranges of equal size, held by owners round-robin.
func tableOf(n, owners int, generation leasehold.Generation) *table.Table {
	holders := make([]*table.Holder, owners)
	for i := range holders {
		holders[i] = &table.Holder{Owner: leasehold.OwnerID(fmt.Sprint(i)), Addr: fmt.Sprintf("owner-%d:1", generation)}
	}
	return mustBuild(n, func(i int) table.Entry {
		return table.Entry{Generation: generation + leasehold.Generation(i), Holder: holders[i%owners]}
	})
}

// Concurrent readers find either the old or the new table.
func TestFindWhilePublishing(t *testing.T) {
	tables := []*table.Table{tableOf(100, 3, 1), tableOf(1000, 3, 2)}
	l := lookupAt(tables[0])
	var reading sync.WaitGroup
	stop := make(chan struct{})
	for g := range 4 {
		reading.Go(func() {
			for key := leasehold.Key(g); ; key += 0x9e3779b97f4a7c15 {
				select {
				case <-stop:
					return
				default:
				}
				if addr, ok := l.Find(key); !ok || addr != "owner-1:1" && addr != "owner-2:1" {
					t.Errorf("%v is at %q", key, addr)
					return
				}
				if p, _ := l.At(key); !p.Range.Contains(key) {
					t.Errorf("%v is in %v", key, p.Range)
					return
				}
			}
		})
	}
	for i := range 200 {
		l.current.Store(newSnapshot(tables[i%2]))
	}
	close(stop)
	reading.Wait()
}

func TestFindDoesNotAllocate(t *testing.T) {
	l := lookupAt(tableOf(1000, 10, 1))
	key := leasehold.Key(0)
	for name, f := range map[string]func(){
		"Find": func() { l.Find(key) },
		"At":   func() { l.At(key) },
		"LSN":  func() { l.LSN() },
	} {
		if n := testing.AllocsPerRun(1000, func() { key += 0x9e3779b97f4a7c15; f() }); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func TestEveryNoteHasAMessage(t *testing.T) {
	for what := range machine.Notables() {
		note := machine.Note{What: machine.Notable(what)}
		if _, text, _ := describe(note); text == note.What.String() {
			t.Errorf("note %q has no message", text)
		}
	}
}
