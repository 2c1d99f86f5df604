package oracle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A Record says that an owner held a key. It is written in one piece with a few others, short
// enough for a pipe to take it whole: a process that is killed has written a record or has not.
// The order of its fields is the format: owners of older builds write it, too.
type Record struct {
	Key        leasehold.Key
	Generation leasehold.Generation
	Session    leasehold.Session
	Check      Span // of a Check that succeeded
	Held       Span // of a Held that succeeded, or of a later Check; zero if none did
	About      Subject
}

// Earlier is the record of an owner whose clock is ahead by so much, on our clock.
func (r Record) Earlier(by time.Duration) Record {
	for _, s := range []*Span{&r.Check, &r.Held} {
		if *s != (Span{}) {
			s.Before, s.After = s.Before-Time(by), s.After-Time(by)
		}
	}
	return r
}

// A Subject is what a record is about.
type Subject byte

// The subjects.
const (
	Operation Subject = iota // a request
	Belief                   // that the key was held, from the first Check to the last
)

const (
	Size = 65 // of a record, in bytes
	// MaxBatch is how many records are written at once: the pipes of every system take
	// 512 bytes whole.
	MaxBatch = 512 / Size
)

// WriteRecords writes records in one piece, MaxBatch of them at most. It waits if the
// reader of a pipe does not keep up.
func WriteRecords(to io.Writer, records ...Record) error {
	piece, err := binary.Append(make([]byte, 0, MaxBatch*Size), binary.LittleEndian, records)
	if err != nil {
		return err
	}
	_, err = to.Write(piece)
	return err
}

// ReadRecords passes on what an owner writes, until the owner is gone.
func ReadRecords(from io.Reader, observe func(Record)) error {
	in := bufio.NewReaderSize(from, 1<<16)
	for {
		var r Record
		switch err := binary.Read(in, binary.LittleEndian, &r); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading what an owner did: %w", err)
		}
		observe(r)
	}
}
