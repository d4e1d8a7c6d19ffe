//go:build e2e && thorough

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/test/cluster"
)

// The plan of adopt --all is not carried out here: other tests have orphans of their own.
func TestTheDoctorFindsALostVolumeAndItsClaimIsKnown(t *testing.T) {
	const node = "node3"
	b := begin(t)
	o := orphans{b}
	here := cluster.OnNode(node)
	claim := b.claim("data", classExt4, "64Mi")
	writer := b.run("writer", claim, here)
	b.sh(writer, "echo kept > /data/file && sync")
	b.remove(writer)
	volume := b.volumeOf(claim)
	o.lose(volume)
	o.awaitOrphans(node, volume.Name)

	// The exit status of a finding, and of a plan, is an error; its text has the answer.
	said := func(args ...string) string {
		_, err := b.Plugin(b.within(), args...)
		if err == nil {
			t.Fatalf("kubectl berth %v has nothing to say", args)
		}
		return err.Error()
	}
	if answer := said("doctor"); !strings.Contains(answer, "Error VolumeLost") || !strings.Contains(answer, "kubectl berth adopt "+node+" "+volume.Name) {
		t.Errorf("the doctor says: %s", answer)
	}
	if plan := said("adopt", "--all", "--node", node, "-o", "json"); !strings.Contains(plan, `"claim": "`+b.namespace+`/data"`) {
		t.Errorf("the plan is: %s", plan)
	}
	b.plugin("adopt", node, volume.Name)
	b.reads(b.run("reader", claim, here), "kept")
	b.plugin("bundle", "--file", filepath.Join(t.TempDir(), "bundle.tar.gz"))
}
