package access

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/leasehold-dev/leasehold"
)

const opRead = "read access file"

// A document parses the YAML of an access file. Its errors have the file and the line.
type document struct{ file string }

func (d document) bad(line int, format string, args ...any) error {
	where := d.file
	if line > 0 {
		where = fmt.Sprintf("%s:%d", d.file, line)
	}
	return leasehold.Errorf(opRead, leasehold.ErrInvalid, where, format, args...)
}

func (d document) parse(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	if err := decoder.Decode(&root); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, d.bad(0, "it is empty and would deny every call")
		}
		return nil, d.bad(0, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var next yaml.Node
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, d.bad(0, "it has more than one document, or invalid text at its end")
	}
	if err := d.rejectAliases(&root); err != nil {
		return nil, err
	}
	return root.Content[0], nil
}

// rejectAliases rejects aliases and explicit tags: with them, a file can expand to
// more than its text.
func (d document) rejectAliases(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Tag == "!!merge" {
		return d.bad(n.Line, "anchors, aliases and merges are not allowed: repeat the text")
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return d.bad(n.Line, "the tag %s is not allowed", n.Tag)
	}
	for _, child := range n.Content {
		if err := d.rejectAliases(child); err != nil {
			return err
		}
	}
	return nil
}

// fields returns the values of a mapping. Unknown and repeated keys are errors.
func (d document) fields(n *yaml.Node, known ...string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, d.bad(n.Line, "want the fields %s, each with a value", strings.Join(known, ", "))
	}
	out := make(map[string]*yaml.Node, len(known))
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || !slices.Contains(known, key.Value):
			return nil, d.bad(key.Line, "unknown field %q: want %s", clip(key.Value), strings.Join(known, ", "))
		case out[key.Value] != nil:
			return nil, d.bad(key.Line, "the field %s is repeated", key.Value)
		}
		out[key.Value] = value
	}
	return out, nil
}

func (d document) list(n *yaml.Node, what string, most int) ([]*yaml.Node, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, d.bad(n.Line, "%s must be a list", what)
	}
	if len(n.Content) > most {
		return nil, d.bad(n.Line, "%s has %d entries, the maximum is %d", what, len(n.Content), most)
	}
	return n.Content, nil
}

// text returns the value of a string. A string that YAML parses as a number or a date
// must be in quotes, because 1.10 and 1.1 are the same number.
func (d document) text(n *yaml.Node, what string) (string, error) {
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		return "", d.bad(n.Line, "%s must be a string", what)
	case n.Tag != "!!str":
		return "", d.bad(n.Line, "%s is %s, which is not a string: put it in quotes", what, clip(n.Value))
	}
	return n.Value, nil
}

func (d document) texts(n *yaml.Node, what string, most int) ([]string, error) {
	entries, err := d.list(n, what, most)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(entries))
	for i, entry := range entries {
		if out[i], err = d.text(entry, what); err != nil {
			return nil, err
		}
		if slices.Contains(out[:i], out[i]) {
			return nil, d.bad(entry.Line, "%s contains %q twice", what, clip(out[i]))
		}
	}
	return out, nil
}

func clip(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
