package demo

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// FuzzQuestions: what a user asks is refused, or is the same when it is asked again.
func FuzzQuestions(f *testing.F) {
	f.Add(encodeQuestions([]question{{key: 1, number: 2, text: "three"}, {key: 4}}))
	f.Add(bytes.Repeat([]byte{0xff}, questionHead))
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := decodeQuestions(body)
		if err != nil {
			if leasehold.KindOf(err) != leasehold.Invalid {
				t.Fatal(err)
			}
			return
		}
		if again := encodeQuestions(all); !bytes.Equal(again, body) {
			t.Fatalf("%x becomes %x", body, again)
		}
	})
}

// FuzzFrames: whatever comes over a line, a frame has as many words as it says, up to a bound.
func FuzzFrames(f *testing.F) {
	f.Add(appendWord(appendHead(nil, 1), 7))
	f.Add(appendHead(nil, maxWords+1))
	f.Add(appendHead(nil, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := newFrameReader(bytes.NewReader(b))
		for taken := 0; ; {
			size, err := awaitFrame(in)
			if err != nil {
				if !errors.Is(err, io.EOF) && leasehold.KindOf(err) != leasehold.Invalid {
					t.Fatal(err)
				}
				return
			}
			words, err := takeFrame(in, size)
			if err != nil {
				return // it is cut off
			}
			if n := len(words) / wordSize; len(words)%wordSize != 0 || n == 0 || n > maxWords {
				t.Fatalf("%d bytes of words", len(words))
			}
			if !bytes.Equal(words, b[taken+frameHead:taken+size]) {
				t.Fatal("words of another frame")
			}
			taken += size
		}
	})
}
