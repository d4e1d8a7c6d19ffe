package usecase

import "berth.dev/berth/internal/usecase/volumetest"

const gi = volumetest.Gi

// The builders under short names: every row of every table has several.
var build, wanted, labelled, says = volumetest.Build, volumetest.Wanted, volumetest.Labelled, volumetest.Says
