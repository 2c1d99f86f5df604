package witness

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
	for _, r := range want {
		b := r.encode()
		pipe.Write(b[:])
	}
	var got []Record
	if err := Read(&pipe, func(r Record) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestARecordThatIsCutOffIsAnError(t *testing.T) {
	err := Read(strings.NewReader(strings.Repeat("x", Size+1)), func(Record) {})
	if err == nil {
		t.Error("half a record was let pass")
	}
}

func TestHostTimeGoesOn(t *testing.T) {
	s := Timed(func() {})
	if s.Before <= 0 || s.After < s.Before {
		t.Errorf("got %+v", s)
	}
}
