// Package settings fills the flags of a command from the environment and from
// a configuration file.
//
// One rule applies to all settings: the flag --data-dir is the variable LEASEHOLD_DATA_DIR and
// the key data-dir of the file. A flag overrides the environment, the environment overrides the
// file, the file overrides the default.
//
// An unknown name is an error, since an ignored typo is hard to find later. The known names are
// those of the whole program, so that all commands can share one file and one environment.
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

	// Prefix is the prefix of our environment variables.
	Prefix = "LEASEHOLD_"

	// FileFlag is the flag that names the configuration file.
	FileFlag = "config"
)

// A Source holds the settings besides the command line.
type Source struct {
	// File is the configuration file from the command line. If it is empty,
	// LEASEHOLD_CONFIG names the file; without either there is none.
	File string
	// Environ is the environment in the format of os.Environ.
	Environ []string
	// Known lists all setting names of the program, spelled as flags.
	Known []string
}

// Fill sets the flags that the command line does not set and that the source contains. Other
// flags keep their defaults. An unknown name or an invalid value is an error that states its
// position.
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

// load merges the values of the file and of the environment, which overrides the file.
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

// variables returns the environment variables with our prefix.
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
				"unknown setting%s", closest(name, known, Variable)))
		}
	}
	return values, errors.Join(unknown...)
}

// Variable returns the environment variable of a setting.
func Variable(name string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// A Value is the text of a setting and its position.
type Value struct {
	Text    string
	List    bool     // written as a list: Items is set, Text is not
	Items   []string // may contain commas
	Subject string   // the variable or the file
	Place   string   // the position in the file
}

// origin is the flag annotation with the source of the value.
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
			err = invalid.Unwrap() // the outer error names a flag that the user did not pass
		}
		return bad("%q: %w", v.Text, err)
	}
	if v.List { // flags.Set marked the flag as changed; now set its items
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

// Origin returns the source of a flag's value: "--listen", "LEASEHOLD_LISTEN",
// "leasehold.yaml, line 3: listen", or "default".
func Origin(f *pflag.Flag) string {
	switch from := f.Annotations[origin]; {
	case len(from) > 0:
		return from[0]
	case f.Changed:
		return "--" + f.Name
	}
	return "default"
}

// Wanted describes the accepted values of a flag by its type; "" for other types.
func Wanted(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 90s, 2m or 1h30m"
	case "float64":
		return "a number such as 1.2"
	case "int":
		return "a whole number"
	case "uint32", "uint64":
		return "a whole number, 0 or more"
	}
	return ""
}

// Describe formats flags as a configuration file: flags that are set, each with its source, and
// the defaults of the others as comments. The values of secrets are omitted.
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

// text returns a YAML string, which is quoted if it looks like another type.
func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
