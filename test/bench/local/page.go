package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"berth.dev/berth/test/figures"
)

// write writes the page and its chart.
func (r *results) write() error {
	var page, chart bytes.Buffer
	r.page(&page)
	figures.Bars(&chart, "One operation after the other, beside the bare commands, median", "ms", r.guest.bars())
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for name, content := range map[string]*bytes.Buffer{"local.md": &page, "local.svg": &chart} {
		path := filepath.Join(r.out, name)
		if err := os.WriteFile(path, content.Bytes(), 0o644); err != nil { //nolint:gosec // it is for everyone to read
			return fmt.Errorf("writing %s: %w", path, err)
		}
		fmt.Fprintln(os.Stderr, "wrote", path)
	}
	return nil
}

func (r *results) page(w io.Writer) {
	g := &r.guest
	fmt.Fprintf(w, introduction, r.took.Round(time.Second), r.machine.Processors, r.machine.Processor, r.machine.Kernel, r.load[0], r.load[1],
		g.Machine.Processors, g.Machine.Kernel, g.Machine.LVM, g.Machine.ZFS, r.volumes, r.few(), r.atOnce, r.atOnce, r.rounds*r.atOnce, r.rounds)
	if r.volumes < 100 {
		fmt.Fprintf(w, "- **This run is a short one**: the usual one has 100 volumes.\n")
	}
	fmt.Fprintf(w, "\n## Beside the bare commands\n\n")
	g.comparison().Print(w)
	fmt.Fprintf(w, "\n![one operation beside the bare command](local.svg)\n%s%s", typedCommands, countedProcesses)
	g.processesTable().Print(w)
	fmt.Fprintf(w, "\n## Wiping\n\nWhat a thick volume held is wiped when it is deleted, unless its class says `None`. Whoever deletes it does not wait for that.\nMedians of %d.\n\n", wipedRounds)
	g.wipingTable().Print(w)
	fmt.Fprintf(w, "\n## Idle\n\nProcesses that had nothing to do for %s, the agent beside kube-apiserver %s and with its volumes in memory behind poold's socket,\n"+
		"poold with its volumes on LVM. An agent with poold embedded is both in one.\n\n", r.idleFor, r.server)
	r.idleTable().Print(w)
	fmt.Fprintf(w, "\n## Statistics\n\nNodeGetVolumeStats of a mounted volume by CSI's socket in the guest, medians of %d rounds of %s.\n\n", statsRounds, r.statsFor)
	g.statsTable().Print(w)
}
