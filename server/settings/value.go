package settings

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold"
)

// A Value is a setting as somebody wrote it, and where.
type Value struct {
	Text    string
	List    bool     // it was written as a list, and has items, not a text
	Items   []string // which may have commas in them
	Subject string   // the variable or the file
	Place   string   // where in the file
}

// origin is the annotation of a flag that says where its value is from.
const origin = "leasehold_setting_from"

// set makes the value that of a flag.
func (v Value) set(flags *pflag.FlagSet, f *pflag.Flag) error {
	bad := func(format string, args ...any) error {
		place := v.Place
		if place != "" {
			place += ": "
		}
		return leasehold.Errorf(op, leasehold.ErrInvalid, v.Subject, "%s%w", place, fmt.Errorf(format, args...))
	}
	slice, many := f.Value.(pflag.SliceValue)
	if v.List && !many {
		return bad("want one value, not a list")
	}
	if err := flags.Set(f.Name, v.Text); err != nil {
		if want := Wanted(f); want != "" {
			return bad("%q: want %s", v.Text, want)
		}
		var invalid *pflag.InvalidValueError
		if errors.As(err, &invalid) {
			err = invalid.Unwrap() // the rest speaks of a flag that nobody used
		}
		return bad("%q: %w", v.Text, err)
	}
	if v.List { // the flag is set, to nothing, as far as the library is concerned
		if err := slice.Replace(v.Items); err != nil {
			return bad("%q: %w", v.Items, err)
		}
	}
	from := v.Subject
	if v.Place != "" {
		from += ", " + v.Place
	}
	return flags.SetAnnotation(f.Name, origin, []string{from})
}

// Origin says where the value of a flag is from, in the words of whoever set
// it: "--listen", "LEASEHOLD_LISTEN", "leasehold.yaml, line 3: listen", or
// "default".
func Origin(f *pflag.Flag) string {
	switch from := f.Annotations[origin]; {
	case len(from) > 0:
		return from[0]
	case f.Changed:
		return "--" + f.Name
	}
	return "default"
}

// Wanted says what a flag takes, if that can be told from its type.
func Wanted(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "duration":
		return "a time such as 90s, 2m or 1h30m"
	case "float64":
		return "a number such as 1.2"
	case "int":
		return "a whole number"
	case "uint32", "uint64":
		return "a whole number, 0 or more"
	}
	return ""
}
