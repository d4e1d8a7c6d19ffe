package main

// comparison names the sides and operations to measure on volumes in one kind of pool.
type comparison struct {
	pool       string
	atOnce     bool
	sides      []string
	operations []string
}

// The operations on three kinds of volumes: those that cannot be copied in an instant, those
// whose copies do not depend on them, and those whose copies do.
var (
	uncopied    = []string{create, deletion}
	independent = []string{create, snapshot, clone, deletion, deleteSnapshot}
	dependent   = []string{create, snapshot, clone, deletion, deleteCopied, deleteSnapshot}
)

var both = []string{bareSide, socketSide}

// onLVM also shows, in its first comparison, the cost of the socket, which is the same for all.
var onLVM = []comparison{
	{thick, false, []string{bareSide, socketSide, localSide}, uncopied},
	{thick, true, both, uncopied},
	{thin, false, both, independent},
	{thin, true, both, independent},
}

var inZpools = []comparison{
	{zvol, false, both, dependent},
	{zvol, true, both, dependent},
	{dataset, false, both, dependent},
	{dataset, true, both, dependent},
}

// series returns the series of a comparison, with its numbers of volumes. A side that carries
// out several operations at once carries out that many in each round.
func (c comparison) series(o options) series {
	s := series{pool: c.pool, atOnce: 1, operations: c.operations, names: c.sides, few: o.few()}
	if c.atOnce {
		s.atOnce, s.few = o.atOnce, o.rounds*o.atOnce
	} else {
		s.many = o.volumes
	}
	s.many = max(s.many, 2*s.few)
	return s
}
