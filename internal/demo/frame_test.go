package demo

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold"
)

func frameOf(words ...uint64) []byte {
	frame := appendHead(nil, len(words))
	for _, w := range words {
		frame = appendWord(frame, w)
	}
	return frame
}

func readFrames(from io.Reader) (all [][]uint64, err error) {
	in := newFrameReader(from)
	for {
		size, err := awaitFrame(in)
		if err != nil {
			return all, err
		}
		words, err := takeFrame(in, size)
		if err != nil {
			return all, err
		}
		var frame []uint64
		for i := range len(words) / wordSize {
			frame = append(frame, wordAt(words, i))
		}
		all = append(all, frame)
	}
}

// TestFramesAreReadAsWritten, however many there are and however they arrive.
func TestFramesAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.SliceOfN(rapid.Uint64(), 1, maxWords), 1, 5).Draw(t, "frames")
		var text []byte
		for _, words := range want {
			text = append(text, frameOf(words...)...)
		}
		var from io.Reader = strings.NewReader(string(text))
		if piece := rapid.IntRange(0, 50).Draw(t, "piece"); piece > 0 {
			from = inPieces{from, piece}
		}
		got, err := readFrames(from)
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, io.EOF) {
			t.Errorf("%v, -want +got:\n%s", err, diff)
		}
	})
}

// inPieces reads a few bytes at a time.
type inPieces struct {
	io.Reader
	size int
}

func (p inPieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.size)]) }

func TestBadFramesAreRefused(t *testing.T) {
	good := frameOf(7)
	for _, test := range []struct {
		name string
		text []byte
		want error
	}{
		{"half a head", good[:1], io.EOF},
		{"half a word", good[:len(good)-1], io.EOF},
		{"no words", frameOf(), leasehold.Invalid},
		{"one word too many", frameOf(make([]uint64, maxWords+1)...), leasehold.Invalid},
		{"garbage", []byte("HTTP/1.1 400 Bad Request"), leasehold.Invalid},
	} {
		if got, err := readFrames(strings.NewReader(string(test.text))); len(got) > 0 || !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, %v, want %v", test.name, got, err, test.want)
		}
	}
}
