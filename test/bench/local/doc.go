// Command local measures the cost of Berth on one node beside the bare command-line
// tools, and writes docs/benchmarks/local.md and its chart.
//
// It runs itself again in a throw-away guest of the lab, where there are disks, a
// device mapper and ZFS, and makes, snapshots, clones and deletes volumes there: through
// poold's socket, as the agent does, and with commands that are started without Berth. Of LVM
// these are the very commands that Berth starts, of ZFS those that an administrator would
// type for the same volumes. It waits for the work that Berth does after its answers, and
// counts it separately. It measures the cost of an idle agent beside a real API server on the
// machine itself.
//
// The guest's processor is emulated, ten to twenty times slower than a real one. The compared
// sides are measured in turn in one guest: read times as ratios.
package main
