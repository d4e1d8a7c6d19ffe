package cluster

import (
	"testing"
	"time"
)

func TestAPowerRecordNamesTheMachineAndTheBootOfTheNode(t *testing.T) {
	at := time.Date(2026, 11, 24, 11, 0, 0, 0, time.FixedZone("", 3600))
	got, err := powerRecord([]byte(`{"status": {"nodeInfo": {"systemUUID": "the machine", "bootID": "the boot", "machineID": "other"}}}`), at)
	if want := `{"boot":"the boot","machine":"the machine","since":"2026-11-24T10:00:00Z"}`; err != nil || got != want {
		t.Errorf("the record is %s, %v", got, err)
	}
	for _, node := range []string{"", "{}", `{"status": {"nodeInfo": {"bootID": "the boot"}}}`, `{"status": {"nodeInfo": {"systemUUID": "the machine"}}}`} {
		if got, err := powerRecord([]byte(node), at); err == nil {
			t.Errorf("of %q the record is %s", node, got)
		}
	}
}
