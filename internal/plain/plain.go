// Package plain makes texts of others fit to be shown to people. Messages, annotations and names that no API
// server checks can have anything in them: orders to the terminal, or lines that pass for the program's own.
package plain

import (
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line folds a text into one line without tabs, so that none of it begins a line or a column of its own.
func Line(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return strings.ContainsRune("\n\t\r\v\f\u0085\u2028\u2029", r)
	}), " ")
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
		case r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)):
			quoted := strconv.QuoteRuneToASCII(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		default:
			out.WriteString(s[:size])
		}
		s = s[size:]
	}
	return out.String()
}
