package demo

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

func TestRecordsArriveAsTheyWereWritten(t *testing.T) {
	want := []record{
		{key: 1, generation: 2, session: leasehold.Session{3, 15: 4}, check: span{5, 6}, held: span{7, 8}},
		{about: aboutBelief, key: 1 << 63, generation: 1<<63 - 1, check: span{1 << 62, 1<<62 + 1}},
	}
	var pipe bytes.Buffer
	for _, r := range want {
		b := r.encode()
		pipe.Write(b[:])
	}
	var got []record
	if err := readRecords(&pipe, func(r record) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestARecordThatIsCutOffIsAnError(t *testing.T) {
	err := readRecords(strings.NewReader(strings.Repeat("x", recordSize+1)), func(record) {})
	if err == nil {
		t.Error("half a record was let pass")
	}
}

func TestHostTimeGoesOn(t *testing.T) {
	s := timed(func() {})
	if s.before <= 0 || s.after < s.before {
		t.Errorf("got %+v", s)
	}
}
