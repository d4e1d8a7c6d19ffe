package nodegone

import "berth.dev/berth/internal/decide/gone/gonetest"

const hour = gonetest.Delay

var start = gonetest.Start
