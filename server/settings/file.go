package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/leasehold-dev/leasehold"
)

// maxFile bounds the size of a configuration file.
const maxFile = 1 << 20

// readFile returns the settings of a YAML file. It keeps the text of each value as written,
// without YAML's types: a name such as 007 is not a number.
func readFile(path string, known []string) (map[string]Value, error) {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(op, leasehold.ErrInvalid, path, format, args...)
	}
	text, err := readBounded(path)
	if err != nil {
		return nil, bad("%w", err)
	}
	top, err := parse(text)
	if err != nil {
		return nil, bad("%w", err)
	}
	values, lines := make(map[string]Value), make(map[string]int)
	for i := 0; i+1 < len(top); i += 2 {
		key, node := top[i], top[i+1]
		switch before, twice := lines[key.Value]; {
		case twice:
			return nil, bad("line %d: %s is already set in line %d", key.Line, key.Value, before)
		case !slices.Contains(known, key.Value):
			return nil, bad("line %d: unknown setting %q%s", key.Line, key.Value, closest(key.Value, known, strings.Clone))
		}
		lines[key.Value] = key.Line
		v, err := read(node)
		if err != nil {
			return nil, bad("line %d: %s: %w", node.Line, key.Value, err)
		}
		v.Subject, v.Place = path, fmt.Sprintf("line %d: %s", key.Line, key.Value)
		values[key.Value] = v
	}
	return values, nil
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		var why *os.PathError
		if errors.As(err, &why) {
			return nil, why.Err // the caller adds the path
		}
		return nil, err
	}
	defer func() { _ = file.Close() }() // read-only
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("the file has more than %d bytes, which is too large for a configuration", maxFile)
	}
	return text, err
}

// parse returns the alternating keys and values of the file's only mapping.
func parse(text []byte) ([]*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil // empty or only comments
	}
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if !errors.Is(decoder.Decode(&more), io.EOF) {
		return nil, errors.New("the file has more than one YAML document")
	}
	top := document.Content[0]
	switch {
	case top.Tag == "!!null":
		return nil, nil
	case top.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("line %d: want lines such as \"namespace: presence\"", top.Line)
	}
	return top.Content, nil
}

// read converts a YAML node to a value: a scalar, or a list of scalars.
func read(node *yaml.Node) (Value, error) {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		return Value{}, errors.New(`the value is missing; write "" for an empty one`)
	case node.Kind == yaml.ScalarNode:
		return Value{Text: node.Value}, nil
	case node.Kind != yaml.SequenceNode:
		return Value{}, errors.New("want a value or a list of values")
	}
	var items []string
	for _, item := range node.Content {
		if item.Kind != yaml.ScalarNode {
			return Value{}, fmt.Errorf("line %d: want a list of plain values", item.Line)
		}
		items = append(items, item.Value)
	}
	return Value{Items: items, List: true}, nil
}
