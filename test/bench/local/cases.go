package main

// comparison is what is measured of volumes in pools of a kind.
type comparison struct {
	pool       string
	atOnce     bool
	sides      []string
	operations []string
}

// What is done to volumes: to those that cannot be copied at once, to those whose copies do
// not depend on them, and to those whose copies do.
var (
	uncopied    = []string{create, deletion}
	independent = []string{create, snapshot, clone, deletion, deleteSnapshot}
	dependent   = []string{create, snapshot, clone, deletion, deleteCopied, deleteSnapshot}
)

var both = []string{bareSide, socketSide}

// onLVM shows in its first comparison what the socket costs, too: it is the same for all.
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

// series is a comparison with its numbers. Whoever does many things at once does as many of
// them in each round.
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
