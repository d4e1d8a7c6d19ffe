package conformance

import (
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
)

// Harness is a provisioner over one empty pool, with functions that disturb it.
type Harness struct {
	Provisioner provision.Provisioner

	// Pool is empty, and no other test uses it; it holds at least 32 units.
	Pool provision.PoolRef

	// Pools are Pool and at least one other like it, of one unit each. Only the suite
	// of pools that are handed out whole needs them.
	Pools []provision.PoolRef

	// Restart returns a new provisioner over the same pool; the suite does not use the
	// old one any more.
	Restart func() provision.Provisioner

	// PutForeign makes something in the pool that is not Berth's.
	PutForeign func(name string, size int64)

	// Open opens a volume's device, as a mount does; the result closes it.
	Open func(v provision.Volume) (closeDevice func())

	// Mislead makes the path of a volume's device lead to the device of another volume; nil for
	// a provisioner without paths.
	Mislead func(v, other provision.Volume)

	// Scramble makes the signature on the device unreadable, if there is one.
	Scramble func(v provision.Volume)

	// Write puts a text at the beginning of a volume's device, and Read returns as
	// many bytes of it. Only the suites of snapshots and of
	// whole pools need them.
	Write func(v provision.Volume, text string)
	Read  func(v provision.Volume, bytes int) string

	// WriteAt puts a text anywhere on a volume's device, and ReadAt returns as many bytes
	// of it. Only RunForgets needs them.
	WriteAt func(v provision.Volume, text string, offset int64)
	ReadAt  func(v provision.Volume, bytes int, offset int64) string

	// Twin puts a volume with the same record into another pool, as a copy of a disk does.
	// Namesake adds a pool of Pool's name with a volume. Away takes Pool away. The result
	// undoes it. Each has a suite of its own.
	Twin     func(v provision.Volume) (remove func())
	Namesake func(id string) (remove func())
	Away     func() (back func())

	// Wipe is set in the request for each volume.
	Wipe provision.Wipe

	// Filesystem is set in the request for each volume: provision.Dataset, or empty.
	Filesystem string

	// Formats returns how often a filesystem was made on a volume.
	Formats func(id string) int
}

// Run runs the suite; start is called for each test.
func Run(t *testing.T, start func(*testing.T) Harness) { run(t, start, machineClock) }

// RunPlayed is Run for a provisioner whose pools are played in memory. Each test has a clock of its
// own, which jumps ahead whenever all goroutines wait.
func RunPlayed(t *testing.T, start func(*testing.T) Harness) { run(t, start, synctest.Test) }

// A clock runs a test by the time of the machine, or by that of a bubble (synctest.Test).
type clock func(t *testing.T, test func(t *testing.T))

func machineClock(t *testing.T, test func(t *testing.T)) { test(t) }

func run(t *testing.T, start func(*testing.T) Harness, by clock) {
	for name, test := range map[string]func(*testing.T, fixture){
		"a new volume has the size asked for, rounded up to the pool's unit": roundsUp,
		"a repeated request returns the same volume":                         repeats,
		"the same id with another size or pool is a conflict":                conflicts,
		"an impossible request is invalid":                                   invalid,
		"an unknown pool is missing":                                         poolMissing,
		"a full pool has no space, and the next smaller volume fits":         noSpace,
		"an inline volume keeps the record of the owner":                     keepsOwner,
		"an inline volume is not given to another owner":                     refusesOtherOwner,
		"a spare in percent of the pool stays free":                          spareInPercent,
		"the spare stays free on create":                                     spareOnCreate,
		"the spare stays free on expand":                                     spareOnExpand,
		"ten requests at once for a volume make a single volume":             sameAtOnce,
		"requests at once for different volumes all succeed":                 differentAtOnce,
		"requests at once never give out more room than the pool has":        neverOvercommits,
		"a volume grows and never shrinks":                                   expands,
		"expanding an unknown volume is not found":                           expandNotFound,
		"a blank volume is formatted once":                                   formatsOnce,
		"another filesystem on a formatted volume is a conflict":             formatConflict,
		"many format requests at once make a single filesystem":              formatAtOnce,
		"an unreadable signature does not make a volume blank":               formatsByRecord,
		"a block device is recorded as given away and gets no filesystem":    recordsWhatIsGivenRaw,
		"a volume made again after delete is blank":                          blankAfterDelete,
		"a path that leads to another volume is refused":                     misled,
		"a delete is done at the return and can be repeated":                 deletes,
		"an open device is in use and survives delete":                       inUse,
		"foreign data in the pool is counted and never touched":              foreign,
		"a name of foreign data is a conflict":                               foreignName,
		"a call after the caller gave up changes nothing":                    goneAlready,
		"a restart changes no record":                                        restarts,
		"changes are signalled":                                              signals,
		"any sequence of operations agrees with the model":                   agreesWithModel,
	} {
		t.Run(name, func(t *testing.T) {
			by(t, func(t *testing.T) { test(t, newFixture(t, start(t))) })
		})
	}
	// The time of a bubble stands still while the provisioner works, so no caller would give up.
	t.Run("a caller that gives up leaves no unfinished volume", func(t *testing.T) { givesUp(t, newFixture(t, start(t))) })
}
