package engine_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

var kinds = engine.Kinds{{Name: "owner-crash", Weight: 10}, {Name: "loss", Weight: 5}, {Name: "isolate", Weight: 2}, {Name: "restore"}}

func TestMixes(t *testing.T) {
	for text, want := range map[string]engine.Mix{
		"default":               {"owner-crash": 10, "loss": 5, "isolate": 2},
		"none":                  {},
		"owner-crash=3, loss=1": {"owner-crash": 3, "loss": 1},
		"default,loss=0":        {"owner-crash": 10, "isolate": 2},
		"default,restore=8":     {"owner-crash": 10, "loss": 5, "isolate": 2, "restore": 8},
	} {
		m, err := kinds.Parse(text)
		if err != nil || !maps.Equal(m, want) {
			t.Errorf("%q is parsed as %v, %v", text, m, err)
		}
		again, err := kinds.Parse(kinds.Format(m))
		if err != nil || !maps.Equal(again, m) {
			t.Errorf("%v is formatted as %q, which is parsed as %v, %v", m, kinds.Format(m), again, err)
		}
	}
	for text, want := range map[string]string{
		"earthquake=1": "no such fault", "loss": "a weight", "loss=x": "a weight", "loss=-1": "0 to 1000", "": "no such fault", "loss=1,default": "no such fault", "loss=1,none": "no such fault",
	} {
		if _, err := kinds.Parse(text); err == nil || !strings.Contains(err.Error(), want) || leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
	for _, m := range []engine.Mix{{"loss": -1}, {"loss": 1001}, {"earthquake": 1}} {
		if err := kinds.Validate(m); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%v: %v", m, err)
		}
	}
}

func TestMixFlagKeepsTheShorterText(t *testing.T) {
	for s, want := range map[string]string{
		"default":               "default",
		"default,loss=5":        "default", // it is 5 anyway
		"default , loss=0":      "default,loss=0",
		"loss=1, loss=1":        "loss=1",
		"none":                  "none",
		"loss=0":                "none",
		"none,isolate=2,loss=1": "loss=1,isolate=2", // in the order of the kinds
	} {
		var mix engine.Mix
		f := kinds.MixFlag(&mix)
		if err := f.Set(s); err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		if f.String() != want {
			t.Errorf("%q: got %q, want %q", s, f, want)
		}
		if again, err := kinds.Parse(f.String()); err != nil || !maps.Equal(again, mix) {
			t.Errorf("%q means %v, but %q means %v (%v)", s, mix, f, again, err)
		}
	}
}

// Each kind is picked as often as its weight, unless it is skipped.
func TestPick(t *testing.T) {
	faults := engine.Faults[*int]{{Kind: engine.Kind{Name: "a"}}, {Kind: engine.Kind{Name: "b"}}, {Kind: engine.Kind{Name: "c"}}}
	calls := 0
	picked := faults.Pick(engine.Mix{"c": 2, "a": 3}, func() bool { calls++; return calls == 1 })
	if len(picked) != 2 || picked[0] != 2 || picked[1] != 2 || calls != 2 {
		t.Errorf("picked %v, %d calls", picked, calls)
	}
}

// FuzzParse: a mix is rejected, or formatting and parsing returns the same mix.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"default", "none", "loss=1", "default,loss=0", "loss=-1", "loss", "=1", "loss=1,loss=2", "none,default", "", "loss=+1", "loss=99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := kinds.Parse(text)
		if err != nil {
			if leasehold.KindOf(err) != leasehold.ErrInvalid {
				t.Fatal(err)
			}
			return
		}
		again, err := kinds.Parse(kinds.Format(m))
		if err != nil || !maps.Equal(m, again) {
			t.Fatalf("%q is formatted as %q, which is parsed as %v, %v", text, kinds.Format(m), again, err)
		}
	})
}
