package mkfs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxLength of options in bytes.
const MaxLength = 512

// setting is one thing that is said: a flag, or a key of a flag, with its value.
type setting struct{ flag, key, value string }

// name is the same for settings that contradict each other.
func (s setting) name() string { return s.flag + " " + strings.TrimPrefix(s.key, "^") }

// Check says what is wrong with options for a filesystem, in mkfs's own words and
// separated by blanks. It names the option and what is allowed in its place.
func Check(filesystem, options string) error {
	_, err := parse(filesystem, options)
	return err
}

// Normal is how options are recorded: with one blank between words.
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
	return all, consistent(all)
}

// parse reads what follows the flag.
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

// consistent refuses what is said twice, and half a stripe.
func consistent(all []setting) error {
	said := map[string]bool{}
	for _, s := range all {
		if said[s.name()] {
			return fmt.Errorf("%s is given twice", strings.TrimSpace(s.name()))
		}
		said[s.name()] = true
	}
	if said["-d su"] != said["-d sw"] {
		return errors.New("-d su and sw go together")
	}
	if said["-E discard"] && said["-E nodiscard"] {
		return errors.New("-E discard and nodiscard contradict each other")
	}
	return nil
}

// defaults of each filesystem, and the flags that every one is made with: over
// whatever the device holds, since that it is blank is the provisioner's record to
// say, not the tool's. Nothing is discarded first, which can take minutes; ext4 keeps
// no blocks for root and sets up its tables later.
var (
	always = map[string][]string{ext4: {"-F", "-q"}, xfs: {"-f", "-q"}}

	defaults = map[string][]setting{
		ext4: {{"-m", "", "0"}, {"-E", "nodiscard", ""}, {"-E", "lazy_itable_init", "1"}, {"-E", "lazy_journal_init", "1"}},
		xfs:  {{flag: "-K"}},
	}
)

// Args are the arguments of mkfs for a filesystem with options, without the device.
func Args(filesystem, options string) ([]string, error) {
	asked, err := parse(filesystem, options)
	if err != nil {
		return nil, err
	}
	base, known := always[filesystem]
	if !known {
		_, err := find(filesystem, "")
		return nil, err
	}
	settings := slices.DeleteFunc(slices.Clone(defaults[filesystem]), func(d setting) bool {
		return slices.ContainsFunc(asked, func(s setting) bool {
			return s.name() == d.name() || s.flag == d.flag && s.key == "discard" && d.key == "nodiscard"
		})
	})
	return append(slices.Clone(base), render(append(settings, asked...))...), nil
}

// render puts the keys of a flag into one list: mkfs.ext4 heeds only the last.
func render(settings []setting) []string {
	var args []string
	at := map[string]int{} // of a flag's list
	for _, s := range settings {
		word := s.key
		if s.key != "" && s.value != "" {
			word += "="
		}
		word += s.value
		if i, begun := at[s.flag]; begun {
			args[i] += "," + word
			continue
		}
		args = append(args, s.flag)
		if word != "" {
			at[s.flag] = len(args)
			args = append(args, word)
		}
	}
	return args
}
