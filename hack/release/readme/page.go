package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// heads has the part of each chart's page that comes before the values.
//
//go:embed berth.md berth-classes.md
var heads embed.FS

// page returns the page for the text of a chart's values, below a head. A value without a comment is an
// error: an administrator who sets it has only the comment to go by.
func page(head string, values []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the values are no mapping")
	}
	var out strings.Builder
	out.WriteString(head)
	out.WriteString("\n| value | default | meaning |\n|---|---|---|\n")
	if err := rows(&out, "", document.Content[0]); err != nil {
		return nil, err
	}
	return []byte(out.String()), nil
}

// rows writes a row for each value below a mapping, and one for each mapping with a comment.
func rows(out *strings.Builder, prefix string, mapping *yaml.Node) error {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name, meaning := prefix+key.Value, comment(key)
		if value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 && !whole[key.Value] {
			if meaning != "" {
				fmt.Fprintf(out, "| `%s` | | %s |\n", name, meaning)
			}
			if err := rows(out, name+".", value); err != nil {
				return err
			}
			continue
		}
		if meaning == "" {
			return fmt.Errorf("%s has no comment", name)
		}
		def, err := literal(value)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(out, "| `%s` | `%s` | %s |\n", name, def, meaning)
	}
	return nil
}

// whole are mappings of Kubernetes' own: they are set as a whole.
var whole = map[string]bool{"resources": true, "updateStrategy": true}

// comment returns the comment above a key, in one line.
func comment(key *yaml.Node) string {
	var words []string
	for line := range strings.Lines(key.HeadComment) {
		words = append(words, strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "#"))...)
	}
	return strings.ReplaceAll(strings.Join(words, " "), "|", `\|`)
}

func literal(value *yaml.Node) (string, error) {
	var decoded any
	if err := value.Decode(&decoded); err != nil {
		return "", err
	}
	text, err := json.Marshal(decoded)
	return string(text), err
}
