package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func statusSchema(t *testing.T, plural string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	schema, ok := schemas(t)[plural].Properties["status"]
	if !ok {
		t.Fatalf("%s have no status", plural)
	}
	return schema
}

// leaf is a field of an example: its place in the example and its path in the schema.
type leaf struct {
	at     []any // keys and indexes, from the object's root
	path   string
	schema apiextensionsv1.JSONSchemaProps
}

func (l leaf) String() string {
	s := ""
	for _, step := range l.at {
		s += fmt.Sprintf(".%v", step)
	}
	return strings.TrimPrefix(s, ".")
}

// within says whether the field is below an item of that index.
func (l leaf) within(index int) bool { return slices.Contains(l.at, any(index)) }

// statusLeaves returns the fields of an object's status. The object must have every
// field of the schema, in some item of each list, so that a new field is not overlooked.
func statusLeaves(t *testing.T, plural string, object map[string]any) []leaf {
	t.Helper()
	schema := statusSchema(t, plural)
	found := leaves(schema, object["status"], "", "status")
	walk("", schema, func(path string, s apiextensionsv1.JSONSchemaProps) {
		isLeaf := len(s.Properties) == 0 && s.Items == nil
		if isLeaf && !slices.ContainsFunc(found, func(l leaf) bool { return l.path == path }) {
			t.Fatalf("the example has no %s: add it, and who writes it", path)
		}
	})
	return found
}

// leaves returns the fields of a value.
func leaves(schema apiextensionsv1.JSONSchemaProps, value any, path string, at ...any) []leaf {
	var found []leaf
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			below := strings.TrimPrefix(path+"."+name, ".")
			if field, ok := v[name]; ok {
				found = append(found, leaves(schema.Properties[name], field, below, append(slices.Clone(at), name)...)...)
			}
		}
	case []any:
		for i := range v {
			found = append(found, leaves(*schema.Items.Schema, v[i], path+"[]", append(slices.Clone(at), i)...)...)
		}
	default:
		found = append(found, leaf{at: at, path: path, schema: schema})
	}
	return found
}

// change gives the field another value that its schema allows, if it has one.
func (l leaf) change(object map[string]any) {
	var parent any = object
	for _, step := range l.at[:len(l.at)-1] {
		parent = child(parent, step)
	}
	last := l.at[len(l.at)-1]
	changed := l.other(child(parent, last))
	switch p := parent.(type) {
	case map[string]any:
		p[last.(string)] = changed
	case []any:
		p[last.(int)] = changed
	}
}

func child(parent, step any) any {
	if list, ok := parent.([]any); ok {
		return list[step.(int)]
	}
	return parent.(map[string]any)[step.(string)]
}

func (l leaf) other(value any) any {
	switch v := value.(type) {
	case bool:
		return !v
	case int64:
		return v + 1
	}
	switch {
	case l.schema.XIntOrString:
		return "7Gi"
	case l.schema.Format == "date-time":
		return "2001-02-03T04:05:06Z"
	case len(l.schema.Enum) == 0:
		return value.(string) + "1" // a number stays a number
	}
	for _, e := range l.schema.Enum {
		if candidate := strings.Trim(string(e.Raw), `"`); candidate != value {
			return candidate
		}
	}
	return value
}
