package main

import (
	"io"
	"strings"
	"testing"
)

func TestAControllerRefusesADriverThatItCannotServe(t *testing.T) {
	for want, args := range map[string][]string{
		`unknown driver "iscsi": use local or disk`:  {"--driver=iscsi"},
		"volumes are attached with --driver=disk":    {"--driver=local", "--attachments"},
		"the extender is served with --driver=local": {"--driver=disk", "--extender-address=127.0.0.1:0"},
	} {
		c := newControllerCommand()
		c.SetArgs(args)
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
