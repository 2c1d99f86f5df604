package search

import (
	"errors"
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/lab/mutant"
	"github.com/leasehold-dev/leasehold/lab/sim"
	"github.com/leasehold-dev/leasehold/lab/sim/explore"
)

// parsed returns the job of the arguments of sim.
func parsed(t *testing.T, args ...string) *Job {
	t.Helper()
	config := &sim.Config{}
	s := &Job{Protocol: Protocol{
		Command: "sim", Simulation: config, Faults: &config.Faults, World: config.Flags(), Mutants: mutant.All(),
		Scenarios: explore.Explorations,
	}}
	flags := pflag.NewFlagSet("sim", pflag.ContinueOnError)
	s.AddFlags(flags, 1000)
	if err := errors.Join(flags.Parse(args), config.FlagsParsed(s.World), s.Validate()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReplayRepeatsTheFlagsOfTheWorld(t *testing.T) {
	const base = "go run ./cmd/leasehold-lab sim --seed 17 --seeds 1 --trace"
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, base},
		{[]string{"--seeds=50", "--seed=3", "--parallel=1", "--stop-after=2", "--json"}, base},
		{[]string{"--owners=5"}, base + " --owners 5"},
		{[]string{"--owners=3", "--duration=120s", "--faults=default", "--leases-off=false"}, base}, // defaults
		{[]string{"--lookups=1", "--managers=3", "--namespaces=1", "--duration=90s"}, base + " --duration 1m30s --managers 3 --lookups 1 --namespaces 1"},
		{[]string{"--leases-off", "--equal-clocks"}, base + " --leases-off --equal-clocks"},
		{[]string{"--diskless"}, base + " --diskless"},
		{[]string{"--faults=none"}, base + " --faults none"},
		{[]string{"--faults=default, loss=0"}, base + " --faults default,loss=0"},
		{[]string{"--faults=loss=1,loss=2,delay=0"}, base + " --faults loss=2"},
		{[]string{"--planted=some-bug", "--owners=2"}, "go run ./cmd/leasehold-lab sim --mutant some-bug --seed 17 --seeds 1 --trace --owners 2"},
	} {
		s := parsed(t, test.args...)
		if got := s.replaySeed(17); got != test.want {
			t.Errorf("%q:\n got %s\nwant %s", test.args, got, test.want)
		}
	}
}

func TestPlantedArgs(t *testing.T) {
	m := mutant.Mutant{Name: "some-bug", Seeds: 70}
	for _, test := range []struct{ args, want []string }{
		{nil, []string{"--planted=some-bug", "--seeds=70", "--stop-after=1"}},
		{[]string{"--mutant", "drift-ignored", "--json"}, []string{"--planted=some-bug", "--seeds=70", "--stop-after=1", "--json=true"}},
		{
			[]string{"--seeds", "1", "--stop-after", "5", "--trace", "--faults", "default, loss=0", "--duration", "1h"},
			[]string{"--planted=some-bug", "--seeds=1", "--stop-after=5", "--trace=true", "--faults=default,loss=0", "--duration=1h0m0s"},
		},
	} {
		s := parsed(t, test.args...)
		if got := plantedArgs(s.Flags, m); !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.args, got, test.want)
		}
	}
}

// Each outcome has an exit status, and outcomeOf returns the outcome of the status.
func TestOutcomes(t *testing.T) {
	for _, o := range []Outcome{Passed, Violated, Survived, Interrupted} {
		if again, err := outcomeOf(int(o)); err != nil || again != o {
			t.Errorf("status %d has outcome %d, %v", o, again, err)
		}
	}
	if _, err := outcomeOf(2); err == nil {
		t.Error("status 2 has an outcome")
	}
}
