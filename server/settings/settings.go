package settings

import (
	"errors"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

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
	layers, err := src.load()
	if err != nil {
		return err
	}
	var wrong error
	flags.VisitAll(func(f *pflag.Flag) {
		v, ok := layers.Get(f.Name).(Value)
		if ok && !f.Changed && wrong == nil {
			wrong = v.set(flags, f)
		}
	})
	return wrong
}

// load reads the layers, the weaker first.
func (src Source) load() (*koanf.Koanf, error) {
	variables, err := src.variables()
	if err != nil {
		return nil, err
	}
	file := src.File
	if v, ok := variables[FileFlag].(Value); ok && file == "" {
		file = v.Text
	}
	// Names have no structure. The delimiter is one that they cannot contain.
	layers := koanf.New("\x00")
	if file != "" {
		values, err := readFile(file, src.Known)
		if err != nil {
			return nil, err
		}
		if err := layers.Load(confmap.Provider(values, ""), nil); err != nil {
			return nil, &leasehold.Error{Op: op, Kind: leasehold.ErrInvalid, Subject: file, Err: err}
		}
	}
	if err := layers.Load(confmap.Provider(variables, ""), nil); err != nil {
		return nil, &leasehold.Error{Op: op, Kind: leasehold.ErrInvalid, Subject: "environment", Err: err}
	}
	return layers, nil
}

// variables returns those variables of the environment that are ours.
func (src Source) variables() (map[string]any, error) {
	known := append([]string{FileFlag}, src.Known...)
	var unknown []error
	provider := env.Provider("", env.Opt{
		Prefix:      Prefix,
		EnvironFunc: func() []string { return src.Environ },
		TransformFunc: func(variable, text string) (string, any) {
			name := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(variable, Prefix)), "_", "-")
			switch {
			case slices.Contains(known, name) && Variable(name) == variable:
				return name, Value{Text: text, Subject: variable}
			case !fromKubernetes(variable, text):
				unknown = append(unknown, leasehold.Errorf(op, leasehold.ErrInvalid, variable,
					"there is no such setting%s", closest(name, known, Variable)))
			}
			return "", nil
		},
	})
	values, err := provider.Read()
	return values, errors.Join(append(unknown, err)...)
}

// Variable returns the environment variable of a setting.
func Variable(name string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
