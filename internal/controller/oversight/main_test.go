package oversight

import (
	"testing"

	"berth.dev/berth/internal/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }
