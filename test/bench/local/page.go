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
	figures.Bars(&chart, "One operation, beside the bare command, median", "ms", r.guest.bars())
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

const introduction = `# What Berth costs on a node

Measured by ` + "`make bench-local`" + ` in %s, on %d processors (%s), Linux %s. Load average of the machine %s before and %s after.
Volumes are made and deleted in a guest with %d emulated processors, Linux %s, LVM %s: its processors are ten to
twenty times slower than real ones, so read times as ratios. Counts do not depend on the machine.

- **Berth** is its provisioner behind poold's socket, as the agent uses it, or in the same process. **Bare commands** are the very
  commands that Berth starts for the same operation, with the same arguments, tags and activation, started without Berth.
- %d volumes of 16 MiB on each side, in %d rounds: all sides in each round, and each time another one first. Each side has a volume group of its own on a disk of its own, in
  which its volumes come to be as many. Nothing is wiped here: see below. Thin volumes are in a thin pool of 512 MiB.
- Times are of one operation, from when a round begins until its last operation ends; medians of the rounds. Ratios are geometric means of the rounds'
  ratios, their intervals bootstraps over the rounds.
- ZFS and whole disks are not measured here.
`

func (r *results) page(w io.Writer) {
	g := &r.guest
	fmt.Fprintf(w, introduction, r.took.Round(time.Second), r.machine.Processors, r.machine.Processor, r.machine.Kernel, r.load[0], r.load[1],
		g.Machine.Processors, g.Machine.Kernel, g.Machine.LVM, r.volumes, r.rounds)
	if r.volumes < 100 {
		fmt.Fprintf(w, "- **This run is a short one**: the usual one has 100 volumes.\n")
	}
	fmt.Fprintf(w, "\n## Beside the bare commands\n\n")
	g.comparison().Print(w)
	fmt.Fprintf(w, "\n![one operation beside the bare command](local.svg)\n\n## Processes\n\nStarted by Berth for one operation, as its runner counts them.\n\n")
	g.processesTable().Print(w)
	fmt.Fprintf(w, "\n## Wiping\n\nWhat a thick volume held is wiped when it is deleted, unless its class says `None`. Whoever deletes it does not wait for that.\nMedians of %d.\n\n", wipedRounds)
	g.wipingTable().Print(w)
	fmt.Fprintf(w, "\n## Idle\n\nProcesses that had nothing to do for %s, the agent beside kube-apiserver %s and with its volumes in memory behind poold's socket,\n"+
		"poold with its volumes on LVM. An agent with poold embedded is both in one.\n\n", r.idleFor, r.server)
	r.idleTable().Print(w)
	fmt.Fprintf(w, "\n## Statistics\n\nNodeGetVolumeStats of a mounted volume by CSI's socket in the guest, medians of %d rounds of %s.\n\n", statsRounds, r.statsFor)
	g.statsTable().Print(w)
}
