package mkfs

import (
	"fmt"
	"strings"
)

// MaxLength is the largest length of options in bytes.
const MaxLength = 512

// setting is a flag, or one key of a flag, with its value.
type setting struct{ flag, key, value string }

// name is the same for two settings of one feature, such as "x" and "^x".
func (s setting) name() string { return s.flag + " " + strings.TrimPrefix(s.key, "^") }

// Check says what is wrong with options for a filesystem. The options have mkfs's own
// syntax and are separated by blanks. The error names the option and the allowed ones.
func Check(filesystem, options string) error {
	_, err := parse(filesystem, options)
	return err
}

// Normal returns options in the form that is recorded: with one blank between words.
func Normal(options string) string { return strings.Join(strings.Fields(options), " ") }

func parse(filesystem, options string) ([]setting, error) {
	if len(options) > MaxLength {
		return nil, fmt.Errorf("%d bytes of options, at most %d are allowed", len(options), MaxLength)
	}
	var all []setting
	words := strings.Fields(options)
	for len(words) > 0 {
		o, err := find(filesystem, words[0])
		if err != nil {
			return nil, err
		}
		if o.keys == nil && o.value.accepts == nil {
			all, words = append(all, setting{flag: o.flag}), words[1:]
			continue
		}
		if len(words) == 1 {
			return nil, fmt.Errorf("%s has no value", o.flag)
		}
		some, err := o.parse(words[1])
		if err != nil {
			return nil, err
		}
		all, words = append(all, some...), words[2:]
	}
	return all, consistent(filesystem, all)
}

// parse reads the word that follows the flag.
func (o option) parse(word string) ([]setting, error) {
	if o.keys == nil {
		if !o.value.accepts(word) {
			return nil, fmt.Errorf("%s %.64q is not %s", o.flag, word, o.value.says)
		}
		return []setting{{flag: o.flag, value: word}}, nil
	}
	var all []setting
	for part := range strings.SplitSeq(word, ",") {
		name, value, valued := strings.Cut(part, "=")
		k, err := o.find(name)
		switch {
		case err != nil:
			return nil, err
		case valued != (k.value.accepts != nil) || valued && !k.value.accepts(value):
			return nil, fmt.Errorf("%s %.64q is not %s", o.flag, part, k)
		}
		all = append(all, setting{o.flag, name, value})
	}
	return all, nil
}
