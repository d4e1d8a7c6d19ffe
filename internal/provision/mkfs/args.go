package mkfs

import "slices"

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
