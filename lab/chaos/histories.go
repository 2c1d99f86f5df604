package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
)

// A belief is the JSON form of an owner's record, on the clock of the chaos process.
type belief struct {
	Key        string               `json:"key"`
	Generation leasehold.Generation `json:"generation"`
	Session    string               `json:"session"`
	Check      [2]oracle.Time       `json:"check"`          // it succeeded between these
	Held       *[2]oracle.Time      `json:"held,omitempty"` // the key was still held between these
}

func beliefOf(r *oracle.Record) belief {
	b := belief{r.Key.String(), r.Generation, r.Session.Short(), [2]oracle.Time{r.Check.Before, r.Check.After}, nil}
	if r.Held != (oracle.Span{}) {
		b.Held = &[2]oracle.Time{r.Held.Before, r.Held.After}
	}
	return b
}

// owned reads and stores the records of an owner.
func (r *run) owned(name string, offset time.Duration, from io.Reader) error {
	return r.keep(name, func(to io.Writer) error {
		lines := json.NewEncoder(to)
		var unkept error
		err := oracle.ReadRecords(from, func(record oracle.Record) {
			record = record.Earlier(offset)
			r.book.Observe(name, record)
			if unkept == nil {
				unkept = lines.Encode(beliefOf(&record))
			}
		})
		return errors.Join(err, unkept)
	})
}

// called reads and stores the history of a caller. The clocks of callers have no offset.
func (r *run) called(name string, _ time.Duration, from io.Reader) error {
	c := r.book.Caller(name)
	defer c.Gone()
	return r.keep(name, func(to io.Writer) error {
		return history.Read(io.TeeReader(from, to), func(e history.Event) {
			if e.Vitals != nil {
				r.vitals.record(name, *e.Vitals)
			}
			c.Observe(e)
		})
	})
}

// keep writes a history to the file of a process. An incomplete history fails the run.
func (r *run) keep(name string, write func(to io.Writer) error) error {
	f, err := keepIn(filepath.Join(r.cfg.Dir, name+".history"), maxHistory)
	if err == nil {
		err = errors.Join(write(f), f.Close())
	}
	if err != nil {
		err = fmt.Errorf("the history of %s: %w", name, err)
		r.fail(err)
	}
	return err
}

// maxHistory is the size of a history at which its older half is dropped. That was judged long before.
const maxHistory = 16 << 20

// A kept is a file of bounded size: when it is full it is renamed, and a new one is created.
type kept struct {
	path string
	most int64
	file *os.File
	size int64
}

// older is the suffix of the renamed file.
const older = ".older"

func keepIn(path string, most int64) (*kept, error) {
	k := &kept{path: path, most: most}
	err := k.open()
	return k, err
}

func (k *kept) open() (err error) {
	if k.file, err = os.OpenFile(k.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	info, err := k.file.Stat()
	if err != nil {
		return errors.Join(err, k.file.Close())
	}
	k.size = info.Size()
	return nil
}

func (k *kept) Write(piece []byte) (int, error) {
	if k.size >= k.most {
		if err := errors.Join(k.file.Close(), os.Rename(k.path, k.path+older), k.open()); err != nil {
			return 0, err
		}
	}
	n, err := k.file.Write(piece)
	k.size += int64(n)
	return n, err
}

func (k *kept) Close() error { return k.file.Close() }
