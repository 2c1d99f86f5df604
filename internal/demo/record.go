package demo

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/leasehold-dev/leasehold"
)

// A record is what an owner says about a key that it held. It is written in one
// piece with a few others at most, short enough for a pipe to take it whole: a
// process that is killed has either written a record or has not.
type record struct {
	about      subject
	key        leasehold.Key
	generation leasehold.Generation
	session    leasehold.Session
	check      span // of a Check that succeeded
	held       span // of a Held that succeeded, or of a later Check; zero if none did
}

// A subject is what a record is about.
type subject byte

const (
	aboutOperation subject = iota // that somebody asked for
	aboutBelief                   // that the key was held, from the first Check to the last
)

// maxBatch is how many records are written at once: every system's pipes take
// 512 bytes whole.
const (
	recordSize = 65
	maxBatch   = 512 / recordSize
)

func (r *record) encode() [recordSize]byte {
	var b [recordSize]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(r.key))
	binary.LittleEndian.PutUint64(b[8:], uint64(r.generation))
	copy(b[16:32], r.session[:])
	for i, t := range []hostTime{r.check.before, r.check.after, r.held.before, r.held.after} {
		binary.LittleEndian.PutUint64(b[32+8*i:], uint64(t))
	}
	b[64] = byte(r.about)
	return b
}

func decode(b *[recordSize]byte) record {
	at := func(i int) hostTime { return hostTime(binary.LittleEndian.Uint64(b[32+8*i:])) }
	return record{
		about:      subject(b[64]),
		key:        leasehold.Key(binary.LittleEndian.Uint64(b[0:])),
		generation: leasehold.Generation(binary.LittleEndian.Uint64(b[8:])),
		session:    leasehold.Session(b[16:32]),
		check:      span{at(0), at(1)},
		held:       span{at(2), at(3)},
	}
}

// readRecords passes on what an owner writes, until the owner is gone.
func readRecords(from io.Reader, observe func(record)) error {
	in := bufio.NewReaderSize(from, 1<<16)
	var b [recordSize]byte
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
