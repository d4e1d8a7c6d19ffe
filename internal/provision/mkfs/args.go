package mkfs

import "slices"

// always are the flags that every filesystem is made with. They let the tool overwrite
// any content: the provisioner's record, not the tool, decides whether the device is
// blank. defaults are options that a request may override. They discard nothing first,
// which can take minutes; ext4 keeps no blocks for root and sets up its tables later.
var (
	always = map[string][]string{ext4: {"-F", "-q"}, xfs: {"-f", "-q"}}

	defaults = map[string][]setting{
		ext4: {{"-m", "", "0"}, {"-E", "nodiscard", ""}, {"-E", "lazy_itable_init", "1"}, {"-E", "lazy_journal_init", "1"}},
		xfs:  {{flag: "-K"}},
	}
)

// Args returns the arguments of mkfs for a filesystem with options, without the device.
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

// Identified returns the arguments that give a filesystem an identity, which Args does not let a request choose.
func Identified(filesystem, uuid string) ([]string, error) {
	switch filesystem {
	case ext4:
		return []string{"-U", uuid}, nil
	case xfs:
		return []string{"-m", "uuid=" + uuid}, nil
	}
	_, err := find(filesystem, "")
	return nil, err
}

// render puts the keys of a flag into one list: of several, mkfs.ext4 uses only the last.
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
