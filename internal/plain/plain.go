// Package plain makes texts of others fit to be shown to people. Messages, annotations and names that no API
// server checks can have anything in them: orders to the terminal, or lines that pass for the program's own.
package plain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// Line folds a text into one line without tabs, so that none of it begins a line or a column of its own.
func Line(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return strings.ContainsRune("\n\t\r\v\f\u0085\u2028\u2029", r)
	}), " ")
}

// JSON is the document of a value, with a line for each part. Its strings are what they were, and what a terminal
// obeys in them is escaped: encoding/json escapes only a part of it.
func JSON(v any) ([]byte, error) {
	var document bytes.Buffer
	e := json.NewEncoder(&document)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, r := range document.String() {
		if obeyed(r) { // in a string, and none has more than 16 bits
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes(), nil
}

// YAML is the same document as YAML.
func YAML(v any) ([]byte, error) {
	document, err := JSON(v)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(document)
}

// Writer replaces what a terminal obeys, and what turns the direction of a text, by its name. Lines and tabs
// stay. Each Write has whole characters.
type Writer struct{ To io.Writer }

func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.To, visible(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func visible(s string) string {
	var out strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1: // a terminal of bytes may obey it
			out.WriteString(`\x` + strconv.FormatUint(uint64(s[0]), 16))
		case obeyed(r):
			quoted := strconv.QuoteRuneToASCII(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		default:
			out.WriteString(s[:size])
		}
		s = s[size:]
	}
	return out.String()
}

// obeyed tells whether a terminal does something else with a character than to show it.
func obeyed(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}
