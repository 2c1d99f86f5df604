package witness

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A Record is what an owner says about a key that it held. It is written in one
// piece with a few others at most, short enough for a pipe to take it whole: a
// process that is killed has either written a record or has not.
type Record struct {
	About      Subject
	Key        leasehold.Key
	Generation leasehold.Generation
	Session    leasehold.Session
	Check      Span // of a Check that succeeded
	Held       Span // of a Held that succeeded, or of a later Check; zero if none did
}

// Earlier is the record of an owner whose clock is ahead of that of whoever judges, as
// that one's clock has it.
func (r Record) Earlier(by time.Duration) Record {
	shift := func(s *Span) {
		if *s != (Span{}) {
			s.Before, s.After = s.Before-Time(by), s.After-Time(by)
		}
	}
	shift(&r.Check)
	shift(&r.Held)
	return r
}

// A Subject is what a record is about.
type Subject byte

// The subjects.
const (
	Operation Subject = iota // that somebody asked for
	Belief                   // that the key was held, from the first Check to the last
)

// MaxBatch is how many records are written at once: every system's pipes take
// 512 bytes whole.
const (
	Size     = 65 // of a record, in bytes
	MaxBatch = 512 / Size
)

// Write writes records in one piece, MaxBatch of them at most. It waits if the
// reader of a pipe does not keep up.
func Write(to io.Writer, records ...Record) error {
	piece := make([]byte, 0, MaxBatch*Size)
	for i := range records {
		b := records[i].encode()
		piece = append(piece, b[:]...)
	}
	_, err := to.Write(piece)
	return err
}

func (r *Record) encode() [Size]byte {
	var b [Size]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(r.Key))
	binary.LittleEndian.PutUint64(b[8:], uint64(r.Generation))
	copy(b[16:32], r.Session[:])
	for i, t := range []Time{r.Check.Before, r.Check.After, r.Held.Before, r.Held.After} {
		binary.LittleEndian.PutUint64(b[32+8*i:], uint64(t))
	}
	b[64] = byte(r.About)
	return b
}

func decode(b *[Size]byte) Record {
	at := func(i int) Time { return Time(binary.LittleEndian.Uint64(b[32+8*i:])) }
	return Record{
		About:      Subject(b[64]),
		Key:        leasehold.Key(binary.LittleEndian.Uint64(b[0:])),
		Generation: leasehold.Generation(binary.LittleEndian.Uint64(b[8:])),
		Session:    leasehold.Session(b[16:32]),
		Check:      Span{at(0), at(1)},
		Held:       Span{at(2), at(3)},
	}
}

// Read passes on what an owner writes, until the owner is gone.
func Read(from io.Reader, observe func(Record)) error {
	in := bufio.NewReaderSize(from, 1<<16)
	var b [Size]byte
	for {
		switch _, err := io.ReadFull(in, b[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading what an owner did: %w", err)
		}
		observe(decode(&b))
	}
}
