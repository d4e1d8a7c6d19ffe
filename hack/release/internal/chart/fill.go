package chart

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fill replaces values in a YAML text, by their keys joined with dots, and changes nothing
// else: comments and empty lines stay. Decoding and encoding would lose them.
func fill(text []byte, values map[string]string) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		node := find(&document, strings.Split(key, "."))
		if node == nil || node.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("there is no value %s", key)
		}
		// The parser counts from one.
		line, column := lines[node.Line-1], node.Column-1
		old := node.Value
		if node.Style == yaml.DoubleQuotedStyle {
			old = strconv.Quote(node.Value)
		}
		rest, ok := bytes.CutPrefix(line[column:], []byte(old))
		if !ok {
			return nil, fmt.Errorf("value %s is not written as %s", key, old)
		}
		lines[node.Line-1] = slices.Concat(line[:column], []byte(strconv.Quote(values[key])), rest)
	}
	return bytes.Join(lines, nil), nil
}

// find returns the node of a key, or nil.
func find(n *yaml.Node, keys []string) *yaml.Node {
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		return find(n.Content[0], keys)
	}
	if len(keys) == 0 {
		return n
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == keys[0] {
			return find(n.Content[i+1], keys[1:])
		}
	}
	return nil
}
