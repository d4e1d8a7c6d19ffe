//go:build older

package test

import "berth.dev/berth/internal/apitest"

// withGroups is an API server as it comes: this version has no beta of groups of pods.
var withGroups []apitest.Option
