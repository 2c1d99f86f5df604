package demo

import (
	"bufio"
	"encoding/binary"

	"github.com/leasehold-dev/leasehold"
)

// What goes over a line is frames: a count, in two bytes, and so many words of
// eight bytes. In a question the words are keys. In the answer each is the number
// of a key's status, or declined, in the same order.
const (
	wordSize     = 8
	frameHead    = 2
	maxWords     = 512
	maxFrameSize = frameHead + wordSize*maxWords
)

func appendHead(frame []byte, count int) []byte {
	return binary.LittleEndian.AppendUint16(frame, uint16(count))
}

func appendWord(frame []byte, w uint64) []byte { return binary.LittleEndian.AppendUint64(frame, w) }

func wordAt(words []byte, i int) uint64 { return binary.LittleEndian.Uint64(words[i*wordSize:]) }

// newFrameReader returns a reader that has room for a whole frame.
func newFrameReader(from interface{ Read([]byte) (int, error) }) *bufio.Reader {
	return bufio.NewReaderSize(from, maxFrameSize)
}

// awaitFrame waits for a frame to begin, and returns how long it is.
func awaitFrame(in *bufio.Reader) (size int, err error) {
	head, err := in.Peek(frameHead)
	if err != nil {
		return 0, err
	}
	count := int(binary.LittleEndian.Uint16(head))
	if count == 0 || count > maxWords {
		return 0, leasehold.Errorf("line", leasehold.Invalid, "", "a frame of %d words, want 1 to %d", count, maxWords)
	}
	return frameHead + wordSize*count, nil
}

// takeFrame reads the frame that has begun, and returns its words. They are good
// until the next read.
func takeFrame(in *bufio.Reader, size int) (words []byte, err error) {
	frame, err := in.Peek(size)
	if err != nil {
		return nil, err
	}
	_, err = in.Discard(size) // it is in the buffer, and stays there until there is more to read
	return frame[frameHead:], err
}
