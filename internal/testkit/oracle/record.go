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

// A Record is the fact that an owner held a key. Writes of a few records to a pipe are atomic, so a killed
// process writes no partial record. The order of the fields is the format, for compatibility with owners of
// older builds.
type Record struct {
	Key        leasehold.Key
	Generation leasehold.Generation
	Session    leasehold.Session
	Check      Span // of a successful Check
	Held       Span // of a successful Held or later Check; zero if none
	About      Subject
}

// Earlier converts a record of an owner whose clock is ahead by a duration.
func (r Record) Earlier(by time.Duration) Record {
	for _, s := range []*Span{&r.Check, &r.Held} {
		if *s != (Span{}) {
			s.Before, s.After = s.Before-Time(by), s.After-Time(by)
		}
	}
	return r
}

// A Subject is the type of a record.
type Subject byte

const (
	Operation Subject = iota // a request
	Belief                   // the key was held from the first Check to the last
)

const (
	Size = 65 // of a record, in bytes
	// MaxBatch is the maximum number of records per write: writes of up to 512 bytes to a pipe are
	// atomic on all systems.
	MaxBatch = 512 / Size
)

// WriteRecords writes at most MaxBatch records in one write. It blocks if the pipe is full.
func WriteRecords(to io.Writer, records ...Record) error {
	piece, err := binary.Append(make([]byte, 0, MaxBatch*Size), binary.LittleEndian, records)
	if err != nil {
		return err
	}
	_, err = to.Write(piece)
	return err
}

// ReadRecords calls observe for each record of an owner until the end of its pipe.
func ReadRecords(from io.Reader, observe func(Record)) error {
	in := bufio.NewReaderSize(from, 1<<16)
	for {
		var r Record
		switch err := binary.Read(in, binary.LittleEndian, &r); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read records of an owner: %w", err)
		}
		observe(r)
	}
}
