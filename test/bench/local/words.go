package main

const introduction = `# What Berth costs on a node

Measured by ` + "`make bench-local`" + ` in %s, on %d processors (%s), Linux %s. Load average of the machine %s before and %s after.
Volumes are made and deleted in a guest with %d emulated processors, Linux %s, LVM %s, ZFS %s: its processors are ten to
twenty times slower than real ones, so read times as ratios. Counts do not depend on the machine. The kernel's ZFS is loaded when all else has been measured.

- **Berth** is its provisioners of LVM and ZFS behind poold's socket, as the agent uses them, or in the same process.
- **Bare commands** of LVM are the very commands by which Berth changes something, with the same arguments, tags and activation, started without Berth, one for
  each volume; Berth removes by one process what waits to be removed. Of ZFS they are [what one would type](#what-is-typed-for-zfs) for the same volumes.
- Each side makes %d volumes of 16 MiB one after the other. Everything else is done to %d of them: to all it would take hours. Where %d things are done at once, it is %d in
  each round, to %d volumes in all, twice as many for "create".
- All sides are in each of the %d rounds, and each time another one first; before each, what [follows](#processes) is done and udev comes to rest. Each side has a volume
  group or a zpool of its own, on a disk of its own. Berth sees the volume groups of the others, and not their zpools. Nothing is wiped here: see below. Thin volumes
  are in a thin pool of 512 MiB.
- What is deleted was never copied, unless the line says so: then it has a snapshot and a clone, which stay.
- Times are of one operation, from when a round begins until its last operation ends; medians of the rounds. Ratios are geometric means of the rounds'
  ratios, their intervals bootstraps over the rounds.
- Whole disks are not measured here.
`

const typedCommands = `
### What is typed for ZFS

The least that one types to come to the same volumes, with the same properties. Berth, too, makes a volume in its place at once. One that
was copied it moves to the trash instead of destroying it: [zfs.md](../zfs.md) says why. Before Berth destroys or renames anything it
asks ZFS what bears the name, by one more process (` + "`zfs list`" + `): ZFS goes by the name alone.

- create: ` + "`zfs create`" + `. It does not wait for the device of a zvol; Berth does.
- snapshot: ` + "`zfs snapshot`" + `.
- clone: ` + "`zfs snapshot` and `zfs clone`, of a zvol with `refreservation=auto`" + `. The snapshot between the two stays; Berth has it go with the clone, afterwards.
- delete: ` + "`zfs destroy`" + `.
- delete what was copied: ` + "`zfs promote`" + ` of the clone, which takes the snapshots over, and ` + "`zfs destroy`" + `.
- delete snapshot: ` + "`zfs destroy`" + ` of the snapshot, which is the clone's by then.
`

const countedProcesses = `
## Processes

Started by Berth for one operation, as its runner counts them. What follows is done after the answer: wiping at once, and what is left to do in a zpool when nothing
has changed there for a second. What it takes is told without that second, for one of the operations that were one after the other. The typed commands leave that:
the base of a clone stays, what was promoted needs nothing, and how much a snapshot holds is not read.

`
