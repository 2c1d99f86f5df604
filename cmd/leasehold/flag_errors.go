package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// wanted says what a flag takes, by the name of its type.
var wanted = map[string]string{
	"bool":     "true or false, or nothing, which means true",
	"duration": "a time such as 90s, 2m or 1h30m",
	"int":      "a whole number",
	"uint64":   "a whole number, 0 or more",
}

// explainFlagError says what to do about a flag that could not be understood,
// where the flag library says what its parser did.
func explainFlagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		closest := nearest(unknown.GetSpecifiedName(), names, 1)
		return fmt.Errorf("there is no flag --%s; the closest is --%s", unknown.GetSpecifiedName(), strings.Join(closest, ""))
	case errors.As(err, &invalid):
		flag := invalid.GetFlag()
		if want, ok := wanted[flag.Value.Type()]; ok {
			return fmt.Errorf("--%s %q: want %s", flag.Name, invalid.GetValue(), want)
		}
		return fmt.Errorf("--%s: %w", flag.Name, invalid.Unwrap())
	}
	return err
}

// nearest returns the n names that are most like one that was mistyped, best
// first. A name that contains it is more like it than any other.
func nearest(mistyped string, names []string, n int) []string {
	distance := func(name string) int {
		if strings.Contains(name, mistyped) {
			return 0
		}
		return editDistance(mistyped, name)
	}
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
	return sorted[:min(n, len(sorted))]
}

// editDistance is Levenshtein's: how many bytes must be inserted, removed or
// replaced to turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1) // row[j]: from the part of a read so far to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
