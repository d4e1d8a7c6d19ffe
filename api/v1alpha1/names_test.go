package v1alpha1

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestTheNameThatAProvisionerMakesOfAClaimIsKept(t *testing.T) {
	const name = "pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f"
	if got := VolumeName(name); got != name {
		t.Fatalf("VolumeName(%q) = %q, want it unchanged", name, got)
	}
}

func TestAnyOtherNameIsHashed(t *testing.T) {
	for name, csiName := range map[string]string{
		"an empty name":                        "",
		"a path":                               "../../etc/passwd",
		"an option":                            "-rf",
		"a name that LVM reserves":             "snapshot",
		"a uid in capitals":                    "pvc-0F3C1C9E-1D2B-4C3D-8E4F-5A6B7C8D9E0F",
		"a uid that is too long":               "pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f0",
		"a line break follows the uid":         "pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f\n",
		"a name longer than a label":           strings.Repeat("x", 1000),
		"a name that looks like a hashed name": "vol-" + strings.Repeat("a", 32),
	} {
		t.Run(name, func(t *testing.T) {
			got := VolumeName(csiName)
			if got == csiName || !strings.HasPrefix(got, "vol-") {
				t.Fatalf("VolumeName(%q) = %q, want a hash", csiName, got)
			}
		})
	}
}

// One release writes both, and another release has to find them.
func TestVolumeNamesAndNodeLabelsAreTheSameInEveryRelease(t *testing.T) {
	if got, want := VolumeName("a name"), "vol-g3uwyytdgyj5n6hjrfbygdwvyx4bjqv3"; got != want {
		t.Fatalf("VolumeName = %q, want %q", got, want)
	}
	if got, want := ReplicaLabel("node-1"), "replica.berth.dev/n-gwlrxzxjxmbevckvql7a4qxajbekq3nf"; got != want {
		t.Fatalf("ReplicaLabel = %q, want %q", got, want)
	}
}

func TestEveryVolumeNameIsOneThatKubernetesAndBerthAccept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		csiName := rapid.String().Draw(t, "CSI name")
		name := VolumeName(csiName)
		if !IsVolumeName(name) {
			t.Fatalf("VolumeName(%q) = %q, which IsVolumeName refuses", csiName, name)
		}
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Fatalf("VolumeName(%q) = %q: %v", csiName, name, problems)
		}
		if other := VolumeName(csiName + "x"); other == name {
			t.Fatalf("two CSI names share the volume name %q", name)
		}
	})
}

func TestOnlyAVolumeNameIsAVolumeName(t *testing.T) {
	for _, id := range []string{
		"", "vol-", "pvc-", "vol-" + strings.Repeat("A", 32), "vol-" + strings.Repeat("1", 32),
		"vol-" + strings.Repeat("a", 33), "/vol-" + strings.Repeat("a", 32), "vol-" + strings.Repeat("a", 32) + "\n",
	} {
		if IsVolumeName(id) {
			t.Errorf("IsVolumeName(%q) = true", id)
		}
	}
}

func TestEveryNodeHasALabelOfItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node := rapid.StringMatching(`[a-z0-9.-]{1,253}`).Draw(t, "node")
		label := ReplicaLabel(node)
		if problems := validation.IsQualifiedName(label); len(problems) > 0 {
			t.Fatalf("ReplicaLabel(%q) = %q: %v", node, label, problems)
		}
		if ReplicaLabel(node+"x") == label {
			t.Fatalf("two nodes share the label %q", label)
		}
	})
}

func TestTheSchemaAcceptsTheNamesThatAreBerths(t *testing.T) {
	for kind, names := range map[string]*regexp.Regexp{"volumes": volumeName, "snapshots": snapshotName} {
		crd, err := os.ReadFile("../../charts/berth/crd-bases/berth.dev_" + kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if rule := "self.metadata.name.matches('" + names.String() + "')"; !strings.Contains(string(crd), rule) {
			t.Errorf("the schema of %s does not have the rule %s", kind, rule)
		}
	}
}

func TestSnapshotNamesAreSafeAndNeverReservedByLVM(t *testing.T) {
	uid := "0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f"
	for csiName, want := range map[string]string{
		"snapshot-" + uid: "snap-" + uid,
		"snap-" + uid:     "snap-" + digest("snap-"+uid, 32),
		"../etc":          "snap-" + digest("../etc", 32),
	} {
		if got := SnapshotName(csiName); got != want || !IsSnapshotName(got) {
			t.Errorf("SnapshotName(%q) = %q, want %q", csiName, got, want)
		}
	}
	for _, id := range []string{"", "snap-", "snapshot-" + uid, "snap-" + strings.ToUpper(uid), "snap-" + uid + "/a"} {
		if IsSnapshotName(id) {
			t.Errorf("IsSnapshotName(%q) = true", id)
		}
	}
}
