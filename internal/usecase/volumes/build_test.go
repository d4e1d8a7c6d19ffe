package volumes

import "berth.dev/berth/internal/usecase/volumetest"

const mi, gi = volumetest.Mi, volumetest.Gi

// The builders under short names: every row of every table has several.
var build, wanted, says = volumetest.Build, volumetest.Wanted, volumetest.Says
