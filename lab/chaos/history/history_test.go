package history

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
)

func TestEventsArriveAsTheyWereWritten(t *testing.T) {
	want := []Event{
		{At: 1, Opened: true},
		{At: 2, Table: &Table{LSN: 3, Hash: 1<<64 - 1}},
		{At: 3, Loss: &Loss{Start: 1 << 63, Generation: 7, Cause: leasehold.CauseExpired, LSN: 9}},
		{At: 4, Call: &Call{Began: 3, Client: 1, Write: true, Name: "key-1", Value: "1.1", Generation: 7}},
		{At: 5},
	}
	var pipe bytes.Buffer
	w := NewWriter(&pipe)
	for _, e := range want {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	pipe.WriteString(`{"at":6,"lo`) // a killed writer
	var got []Event
	if err := Read(&pipe, func(e Event) { got = append(got, e) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInvalidEventIsAnError(t *testing.T) {
	if err := Read(strings.NewReader("panic: oh no\n"), func(Event) {}); err == nil {
		t.Error("no error")
	}
}

func TestWatchedKeysDiffer(t *testing.T) {
	seen := make(map[leasehold.Key]bool)
	for _, key := range Keys(Watched(256)) {
		seen[key] = true
	}
	if len(seen) != 256 {
		t.Errorf("%d keys", len(seen))
	}
}
