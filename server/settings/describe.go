package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

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

// describe writes a flag as one line of YAML.
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
