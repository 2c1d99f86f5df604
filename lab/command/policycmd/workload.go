package policycmd

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/lab/policylab"
)

type workloadOptions struct {
	name  string
	alpha float64
	keys  float64
	hot   float64
	day   time.Duration
	swell float64
	tide  float64
	file  string
}

func (o *workloadOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.name, "workload", policylab.NameZipf, "`name` of the workload")
	f.Float64Var(&o.alpha, "alpha", policylab.DefaultAlpha, "for zipf, hot and diurnal: skew of the keys; 0 is even")
	f.Float64Var(&o.keys, "keys", policylab.DefaultKeys, "for zipf, hot and diurnal: number of keys, such as 1e9")
	f.Float64Var(&o.hot, "hot", 0.3, "for hot: share of the hot key of all load")
	f.DurationVar(&o.day, "day", 30*time.Minute, "for diurnal: duration of a compressed day")
	f.Float64Var(&o.swell, "swell", 0.5, "for diurnal: relative increase of the cost of keys in their evening, and decrease 12 hours later")
	f.Float64Var(&o.tide, "tide", 0.3, "for diurnal: relative amplitude of the total load")
	f.StringVar(&o.file, "file", "", "for recorded: `file` with the loads")
}

// meantFor has the workloads of each flag. Other workloads reject the flag, because it would have no effect.
var meantFor = map[string][]string{
	"alpha": {policylab.NameZipf, policylab.NameHot, policylab.NameDiurnal},
	"keys":  {policylab.NameZipf, policylab.NameHot, policylab.NameDiurnal},
	"hot":   {policylab.NameHot},
	"file":  {policylab.NameRecorded},
	"day":   {policylab.NameDiurnal},
	"swell": {policylab.NameDiurnal},
	"tide":  {policylab.NameDiurnal},
}

// checkFlags returns an error for a flag that is for other workloads.
func (o *workloadOptions) checkFlags(flags *pflag.FlagSet) (err error) {
	if !slices.Contains(workloadNames(), o.name) {
		return nil // reported by make
	}
	flags.Visit(func(f *pflag.Flag) {
		if names, limited := meantFor[f.Name]; limited && !slices.Contains(names, o.name) && err == nil {
			err = fmt.Errorf("--%s is for --workload %s, not for %s", f.Name, strings.Join(names, ", "), o.name)
		}
	})
	return err
}

func (o *workloadOptions) make(seed uint64, period time.Duration) (policylab.Workload, error) {
	zipf := policylab.Zipf{Alpha: o.alpha, Keys: o.keys, Seed: seed}
	switch o.name {
	case policylab.NameZipf:
		return zipf.Workload()
	case policylab.NameHot:
		return policylab.Hot(o.hot, zipf)
	case policylab.NameDiurnal:
		return policylab.Diurnal{Zipf: zipf, Day: int(o.day / period), Swell: o.swell, Tide: o.tide}.Workload()
	case policylab.NameRecorded:
		return o.read()
	case policylab.NameUniform:
		return policylab.Uniform(), nil
	}
	return nil, noSuchName("workload", o.name, workloadNames())
}

// read reads a recorded workload. It must be a regular file: a pipe may block or never end.
func (o *workloadOptions) read() (policylab.Workload, error) {
	if o.file == "" {
		return nil, fmt.Errorf("--workload recorded requires --file, with the loads")
	}
	info, err := os.Stat(o.file)
	if err != nil {
		return nil, fmt.Errorf("--file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("--file %s: not a regular file", o.file)
	}
	file, err := os.Open(o.file)
	if err != nil {
		return nil, fmt.Errorf("--file: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	w, err := policylab.ReadRecorded(file)
	if err != nil {
		return nil, fmt.Errorf("--file %s: %w", o.file, err)
	}
	return w, nil
}

// maxWeights limits a list of weights to the number of owners.
const maxWeights = policylab.MaxOwners

// parseWeights parses comma-separated numbers. The lab validates them.
func parseWeights(text string) (weights []float64, err error) {
	fields := strings.Split(text, ",")
	if len(fields) > maxWeights {
		return nil, fmt.Errorf("--weights has %d numbers, want at most %d", len(fields), maxWeights)
	}
	for _, field := range fields {
		w, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
		if err != nil {
			return nil, fmt.Errorf("--weights: %q is not a number: want weights such as 1,1,2", field)
		}
		weights = append(weights, w)
	}
	return weights, nil
}

// parseChanges parses changes of the form N@PERIOD. With a negative sign the owners leave.
func parseChanges(flag string, texts []string, sign int) ([]policylab.Change, error) {
	var changes []policylab.Change
	for _, text := range texts {
		owners, period, found := strings.Cut(text, "@")
		n, err := strconv.Atoi(owners)
		at, errPeriod := strconv.Atoi(period)
		if !found || err != nil || errPeriod != nil || n < 1 {
			return nil, fmt.Errorf("--%s %q: want N@PERIOD, such as 10@20: 10 owners in period 20", flag, text)
		}
		changes = append(changes, policylab.Change{Period: at, Owners: sign * n})
	}
	return changes, nil
}

func workloadNames() []string {
	var names []string
	for _, k := range policylab.Kinds() {
		names = append(names, k.Name)
	}
	return names
}
