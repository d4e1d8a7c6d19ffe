package install

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheDefinitionsOfTheSnapshotAPIComeWithItsModule(t *testing.T) {
	definitions, err := (Config{Root: "../.."}).snapshotDefinitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := string(bytes.Join(definitions, nil))
	for _, plural := range []string{"volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses"} {
		if !strings.Contains(all, "\n  name: "+plural+".snapshot.storage.k8s.io\n") {
			t.Errorf("there is no definition of %s", plural)
		}
	}
}
