package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
)

func held(start, limit leasehold.Key) Range {
	return Range{Interval: intervalOf(uint64(start<<60), uint64(limit<<60))}
}

func TestMissing(t *testing.T) {
	for _, test := range []struct {
		name  string
		keys  Range
		in    []Range
		share float64
		some  bool
	}{
		{"nothing", held(4, 8), nil, 0.25, true},
		{"elsewhere", held(4, 8), []Range{held(0, 4), held(8, 0)}, 0.25, true},
		{"all", held(4, 8), []Range{held(2, 6), held(6, 9)}, 0, false},
		{"a gap", held(4, 8), []Range{held(2, 5), held(6, 9)}, 1.0 / 16, true},
		{"all but the end", held(4, 8), []Range{held(2, 7)}, 1.0 / 16, true},
		{"all but the beginning", held(4, 8), []Range{held(5, 0)}, 1.0 / 16, true},
		{"everything", held(0, 0), []Range{held(0, 8), held(8, 0)}, 0, false},
	} {
		if share, some := (Ranges{Ranges: test.in}).missing(test.keys.Keys()); share != test.share || some != test.some {
			t.Errorf("%s: %v is missing (%t), want %v (%t)", test.name, share, some, test.share, test.some)
		}
	}
}

// Changes keep the order of their LSNs, and are found, even if the clock of a leader is behind that of its
// predecessor.
func TestEventsWithDifferentClocks(t *testing.T) {
	at := time.Date(2026, 11, 15, 10, 0, 0, 0, time.UTC)
	q := &eventSearch{EventQuery: EventQuery{Since: at, Most: 10}}
	for i, minutes := range []int{4, -2, 3, 2, -6} { // of LSN 5, 4, 3, 2, 1
		c := Change{LSN: leasehold.LSN(5 - i), At: at.Add(time.Duration(minutes) * time.Minute)}
		if more := q.add(c.Event("x")); more != (minutes > -5) {
			t.Errorf("%d: continue is %t", 5-i, more)
		}
	}
	q.addLeaders([]Leadership{{At: at.Add(150 * time.Second), Term: 7}})
	var got []string
	for _, e := range q.result().Events {
		if e.Change != nil {
			got = append(got, fmt.Sprint(e.Change.LSN))
		} else {
			got = append(got, e.Type)
		}
	}
	if diff := cmp.Diff([]string{"2", "leader", "3", "5"}, got); diff != "" {
		t.Error(diff)
	}
}

// A move that is neither done nor in progress for abandonAfter has failed.
func TestAbandonedMoveFails(t *testing.T) {
	m := &RangeMove{Owner: "c", Interval: held(0, 8).Interval, patience: abandonAfter, sent: sentTally{}, seen: time.Now()}
	if _, _, err := m.assess(Ranges{}, Moves{}); err != nil {
		t.Errorf("immediately after the start: %v", err)
	}
	m.seen = time.Now().Add(-time.Minute)
	if _, _, err := m.assess(Ranges{}, Moves{Waiting: 1}); err != nil {
		t.Errorf("a move that may be unlisted: %v", err)
	}
	m.seen = time.Now().Add(-time.Minute)
	if _, _, err := m.assess(Ranges{}, Moves{}); !errors.Is(err, ErrNotMoved) || !strings.Contains(err.Error(), "50.00 %") {
		t.Errorf("a minute after the start: %v", err)
	}
	if _, done, err := m.assess(Ranges{Ranges: []Range{held(0, 8)}}, Moves{}); err != nil || !done {
		t.Errorf("done %t: %v", done, err)
	}
}

// The JSON forms are stable.
func TestJSON(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{held(8, 0).Interval, `{"start":"8000000000000000","limit":"end"}`},
		{held(0, 8).Interval, `{"start":"0000000000000000","limit":"8000000000000000"}`},
		{Seconds(1500 * time.Millisecond), `1.5`},
		{LeaderName{Term: 1 << 60, Leader: "m"}, `{"term":"1152921504606846976","leader":"m"}`},
		{Event{Type: EventGap}, `{"type":"gap"}`},
		{Slot{Start: 1, Owner: "a"}, `{"start":"0000000000000001","owner":"a"}`},
	} {
		text, err := json.Marshal(test.value)
		if err != nil || string(text) != test.want {
			t.Errorf("%#v is %s (%v), want %s", test.value, text, err, test.want)
		}
	}
	var back Change
	was := Change{LSN: 3, Kind: ChangeMoved, Interval: held(8, 0).Interval, Generation: 1 << 60, At: time.Unix(1, 0).UTC()}
	text, err := json.Marshal(was)
	if err != nil || json.Unmarshal(text, &back) != nil || back != was {
		t.Errorf("%s is parsed as %+v", text, back)
	}
}

func TestParseBackup(t *testing.T) {
	config := `{"name": "presence"}`
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", "not a backup: EOF"},
		{"no JSON", "PK\x03\x04", "not a backup: invalid character"},
		{"other JSON", `{"namespaces": []}`, "leaseholdBackup is 0, want 1"},
		{"a newer version", `{"leaseholdBackup": 2}`, "leaseholdBackup is 2, want 1"},
		{"two of them", `{"leaseholdBackup": 1}{"leaseholdBackup": 1}`, "text after the JSON object"},
		{"a name twice", `{"leaseholdBackup": 1, "namespaces": [{"newestGeneration": "1", "config": ` + config + `}, {"newestGeneration": "1", "config": ` + config + `}]}`, "has namespace presence twice"},
		{"an unknown setting", `{"leaseholdBackup": 1, "namespaces": [{"newestGeneration": "1", "config": {"name": "presence", "colour": 1}}]}`, "unknown field"},
		{"a bad setting", `{"leaseholdBackup": 1, "namespaces": [{"newestGeneration": "1", "config": {"name": "presence", "policy": "best"}}]}`, `policy is "best"`},
		{"no generation", `{"leaseholdBackup": 1, "namespaces": [{"config": ` + config + `}]}`, "has no newest generation"},
		{"too high a generation", `{"leaseholdBackup": 1, "namespaces": [{"newestGeneration": "18446744073709551615", "config": ` + config + `}]}`, "want less than 2^62"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := ParseBackup([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
