package main

import "testing"

func TestTheSeparatorBeforeACommandIsOptional(t *testing.T) {
	cases := map[string]struct {
		args []string
		want []string
	}{
		"with separator":               {[]string{"node1", "--", "ls", "-l"}, []string{"ls", "-l"}},
		"without separator":            {[]string{"node1", "ls", "-l"}, []string{"ls", "-l"}},
		"a separator of the command's": {[]string{"node1", "--", "sh", "--", "x"}, []string{"sh", "--", "x"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, argv, err := splitExec(c.args)
			if err != nil || len(argv) != len(c.want) || argv[0] != c.want[0] {
				t.Errorf("splitExec(%v) = %v, %v; want %v", c.args, argv, err, c.want)
			}
		})
	}
	if _, _, err := splitExec([]string{"node1", "--"}); err == nil {
		t.Error("no command at all was accepted")
	}
}
