// Package settings fills the flags of a command from the environment and from
// a configuration file.
//
// There is one rule, so that nobody has to look anything up: what is the flag
// --data-dir is the variable LEASEHOLD_DATA_DIR and the key data-dir of the
// file. A flag prevails over the environment, the environment over the file,
// the file over the default.
//
// Whatever nobody reads is an error: a setting that was mistyped and then
// ignored is found out much later, and not where it was written. The names are
// those of the whole program, not of one command, so that one file and one
// environment serve all commands.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/leasehold-dev/leasehold"
)

const (
	op = "settings"

	// Prefix is what the names of our environment variables begin with.
	Prefix = "LEASEHOLD_"

	// FileFlag is the flag that names the configuration file.
	FileFlag = "config"
)

// A Source is where settings come from besides the command line.
type Source struct {
	// File is the configuration file that the command line names. If it is
	// empty, LEASEHOLD_CONFIG names it; if that is not set, there is none.
	File string
	// Environ is the environment, as os.Environ returns it.
	Environ []string
	// Known are the names of all settings of the program, as flags have them.
	Known []string
}

// Fill sets those of the flags that were not given on the command line and
// that the source has. Other flags keep their defaults. A name that is not
// known, or a value that its flag does not take, is an error that says where
// it stands.
func Fill(flags *pflag.FlagSet, src Source) error {
	values, err := src.load()
	if err != nil {
		return err
	}
	var wrong error
	flags.VisitAll(func(f *pflag.Flag) {
		v, ok := values[f.Name]
		if ok && !f.Changed && wrong == nil {
			wrong = v.set(flags, f)
		}
	})
	return wrong
}

// load returns the values of the file and of the environment, which prevails.
func (src Source) load() (map[string]Value, error) {
	variables, err := src.variables()
	if err != nil {
		return nil, err
	}
	file := cmp.Or(src.File, variables[FileFlag].Text)
	if file == "" {
		return variables, nil
	}
	values, err := readFile(file, src.Known)
	if err != nil {
		return nil, err
	}
	maps.Copy(values, variables)
	return values, nil
}

// variables returns those variables of the environment that are ours.
func (src Source) variables() (map[string]Value, error) {
	known := append([]string{FileFlag}, src.Known...)
	values := make(map[string]Value)
	var unknown []error
	for _, entry := range src.Environ {
		variable, text, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(variable, Prefix)
		name := strings.ReplaceAll(strings.ToLower(rest), "_", "-")
		switch {
		case !ours:
		case slices.Contains(known, name) && Variable(name) == variable:
			values[name] = Value{Text: text, Subject: variable}
		case !fromKubernetes(variable, text):
			unknown = append(unknown, leasehold.Errorf(op, leasehold.ErrInvalid, variable,
				"there is no such setting%s", closest(name, known, Variable)))
		}
	}
	return values, errors.Join(unknown...)
}

// Variable returns the environment variable of a setting.
func Variable(name string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

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

// Describe writes flags as a configuration file that sets the same: those that
// somebody has set, each with where it is from, and the defaults of the others
// as comments. Of secrets it says only that they are set.
func Describe(flags *pflag.FlagSet, secrets ...string) (string, error) {
	var (
		out    strings.Builder
		failed error
	)
	flags.VisitAll(func(f *pflag.Flag) {
		line, err := describe(f)
		switch {
		case err != nil:
			failed = err
		case f.Changed && slices.Contains(secrets, f.Name):
			fmt.Fprintf(&out, "# %s is not shown; it is from %s\n", f.Name, Origin(f))
		case f.Changed:
			out.WriteString(line)
		default:
			out.WriteString("# " + line)
		}
	})
	return out.String(), failed
}

func describe(f *pflag.Flag) (string, error) {
	value := &yaml.Node{Kind: yaml.ScalarNode, Value: f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		value = &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, item := range list.GetSlice() {
			value.Content = append(value.Content, text(item))
		}
	} else if f.Value.Type() == "string" {
		value = text(f.Value.String())
	}
	if f.Changed {
		value.LineComment = Origin(f)
	}
	line, err := yaml.Marshal(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text(f.Name), value}})
	return string(line), err
}

// text is a string, which is quoted if it looks like something else.
func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
