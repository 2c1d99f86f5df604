package oracle

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

func TestRecordsArriveAsTheyWereWritten(t *testing.T) {
	want := []Record{
		{Key: 1, Generation: 2, Session: leasehold.Session{3, 15: 4}, Check: Span{5, 6}, Held: Span{7, 8}},
		{About: Belief, Key: 1 << 63, Generation: 1<<63 - 1, Check: Span{1 << 62, 1<<62 + 1}},
	}
	var pipe bytes.Buffer
	if err := WriteRecords(&pipe, want...); err != nil || pipe.Len() != 2*Size {
		t.Fatalf("wrote %d bytes: %v", pipe.Len(), err)
	}
	var got []Record
	if err := ReadRecords(&pipe, func(r Record) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTruncatedRecordIsAnError(t *testing.T) {
	err := ReadRecords(strings.NewReader(strings.Repeat("x", Size+1)), func(Record) {})
	if err == nil {
		t.Error("a truncated record was accepted")
	}
}

func TestHostTimeGoesOn(t *testing.T) {
	s := Timed(func() {})
	if s.Before <= 0 || s.After < s.Before {
		t.Errorf("got %+v", s)
	}
}

// Earlier keeps zero spans.
func TestEarlier(t *testing.T) {
	got := Record{Key: 1, Check: Span{10, 12}}.Earlier(4)
	if want := (Record{Key: 1, Check: Span{6, 8}}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := (Record{Check: Span{10, 12}, Held: Span{13, 14}}).Earlier(-1); got.Check != (Span{11, 13}) || got.Held != (Span{14, 15}) {
		t.Errorf("got %+v", got)
	}
}

// The format is stable, for owners of older builds.
func TestFormat(t *testing.T) {
	var got bytes.Buffer
	r := Record{About: Belief, Key: 1, Generation: 2, Session: leasehold.Session{3}, Check: Span{4, 5}, Held: Span{6, 7}}
	if err := WriteRecords(&got, r); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, Size)
	want[0], want[8], want[16], want[32], want[40], want[48], want[56], want[64] = 1, 2, 3, 4, 5, 6, 7, 1
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got  %x\nwant %x", got.Bytes(), want)
	}
}
