package policylab

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold"
)

// writeRecorded formats loads for ReadRecorded.
func writeRecorded(loads []*Load, asCSV bool) string {
	var out strings.Builder
	if asCSV {
		out.WriteString("# a comment\nperiod, keys, rate\n")
	}
	for period, l := range loads {
		for _, k := range l.keys {
			if asCSV {
				fmt.Fprintf(&out, "%d,%v,%v\n", period, k.Key, k.Cost)
			} else {
				fmt.Fprintf(&out, `{"period": %d, "key": "%v", "rate": %v}`+"\n", period, k.Key, k.Cost)
			}
		}
		for _, r := range l.spread() {
			if asCSV {
				fmt.Fprintf(&out, "%d, %v, %v\n", period, r.Range, r.Cost)
			} else {
				fmt.Fprintf(&out, `{"period": %d, "range": "%v", "rate": %v}`+"\n\n", period, r.Range, r.Cost)
			}
		}
	}
	return out.String()
}

// TestRecordedRoundTrip: reading a formatted workload returns the same loads.
func TestRecordedRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var loads []*Load
		for range rapid.IntRange(1, 4).Draw(t, "periods") {
			l := drawLoad(t)
			if len(l.keys)+len(l.spread()) == 0 {
				l = newLoad([]KeyCost{{7, 1}}, nil) // a period needs a record
			}
			loads = append(loads, l)
		}
		w, err := ReadRecorded(strings.NewReader(writeRecorded(loads, rapid.Bool().Draw(t, "csv"))))
		if err != nil {
			t.Fatal(err)
		}
		bounds := drawBounds(t, 10)
		for period := range len(loads) + 2 {
			want, got := cursor{load: loads[min(period, len(loads)-1)]}, cursor{load: w.At(period)}
			for i, start := range bounds {
				limit := rangeOf(bounds, i, start).Limit
				if a, b := want.to(limit), got.to(limit); !near(a, b) {
					t.Fatalf("period %d, up to %v: %v, want %v", period, limit, b, a)
				}
			}
		}
	})
}

// TestRecordedPeriods: a missing period is equal to the previous one.
func TestRecordedPeriods(t *testing.T) {
	w, err := ReadRecorded(strings.NewReader("period,keys,rate\n2,0000000000000001,5\n4,0000000000000001,7\n"))
	if err != nil {
		t.Fatal(err)
	}
	for period, want := range []float64{0, 0, 5, 5, 7, 7} {
		if got := w.At(period).Total(); got != want {
			t.Errorf("period %d: %v, want %v", period, got, want)
		}
	}
}

func TestInvalidRecordsAreRejected(t *testing.T) {
	const good = `{"period": 1, "key": "4f21c3aa00000000", "rate": 1}` + "\n"
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", "no records"},
		{"comments alone", "# a\n\n", "no records"},
		{"no JSON", good + "\nhello", `"line 3": want an object such as`},
		{"a field too much", `{"period": 0, "key": "4f21c3aa00000000", "rate": 1, "x": 1}`, `"line 1": want an object`},
		{"two on a line", strings.TrimSpace(good) + good, `"line 1": more than one object`},
		{"no period", `{"key": "4f21c3aa00000000", "rate": 1}`, `"line 1": period is missing`},
		{"no rate", `{"period": 0, "key": "4f21c3aa00000000"}`, `"line 1": rate is missing`},
		{"neither", `{"period": 0, "rate": 1}`, `"line 1": want either a key or a range`},
		{"both", `{"period": 0, "key": "4f21c3aa00000000", "range": "0000000000000000-end", "rate": 1}`, `"line 1": want either`},
		{"no key", `{"period": 0, "key": "alice", "rate": 1}`, `want 16 hexadecimal digits`},
		{"no range", `{"period": 0, "range": "8000000000000000-4000000000000000", "rate": 1}`, `start must be below limit`},
		{"negative rate", good + `{"period": 1, "range": "0000000000000000-end", "rate": -1}`, `"line 2": rate is -1`},
		{"huge rate", good + `{"period": 1, "range": "0000000000000000-end", "rate": 1e300}`, `"line 2": rate is 1e+300`},
		{"no number", `{"period": 1, "range": "0000000000000000-end", "rate": NaN}`, `"line 1": want an object`},
		{"negative period", `{"period": -1, "key": "4f21c3aa00000000", "rate": 1}`, `"line 1": period is -1`},
		{"far period", `{"period": 2000000000, "key": "4f21c3aa00000000", "rate": 1}`, `"line 1": period is 2000000000`},
		{"back in time", good + `{"period": 0, "key": "4f21c3aa00000000", "rate": 1}`, `"line 2": period 0 comes after period 1`},
		{"a key twice", good + good, `"line 2": a key of period 1 occurs twice`},
		{
			"ranges overlap", `{"period": 0, "range": "0000000000000000-end", "rate": 1}` + "\n" +
				`{"period": 0, "range": "4000000000000000-5000000000000000", "rate": 1}` + "\n" + good, `"line 3": ranges of period 0 overlap`,
		},
		{"CSV, two fields", "period,keys,rate\n1,2\n", `"line 2": has 2 fields, want 3`},
		{"CSV, no period", "period,keys,rate\nx,4f21c3aa00000000,1\n", `"line 2": period is "x"`},
		{"CSV, no rate", "period,keys,rate\n0,4f21c3aa00000000,many\n", `"line 2": rate is "many"`},
		{"CSV, rate NaN", "period,keys,rate\n0,4f21c3aa00000000,NaN\n", `"line 2": rate is NaN`},
		{"CSV, other header", "time,keys,rate\n", `"line 1": want the header period,keys,rate, or an object`},
		{"a long line", good + strings.Repeat("x", maxLine+1), `"line 2": longer than 4096 bytes`},
	} {
		_, err := ReadRecorded(strings.NewReader(test.text))
		if leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
}

// endless is an endless line.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.read += len(p)
	return len(p), nil
}

// TestReadRecordedIsBounded: reading ends in an endless line, and after too many records.
func TestReadRecordedIsBounded(t *testing.T) {
	from := &endless{}
	if _, err := ReadRecorded(from); err == nil || from.read > 1<<20 {
		t.Errorf("%d bytes were read: %v", from.read, err)
	}
	r := &recordReader{records: maxRecords}
	if err := r.add(record{}); err == nil || !strings.Contains(err.Error(), "more than 4000000 records") {
		t.Errorf("one record too many: %v", err)
	}
	if _, err := ReadRecorded(io.MultiReader(strings.NewReader("\n"), brokenReader{})); leasehold.KindOf(err) != leasehold.ErrUnavailable {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
