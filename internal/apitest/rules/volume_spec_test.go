package rules

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const (
	nameForm         = "metadata.name must be pvc-<uid>, or vol- and 32 characters of base32"
	capacityPositive = "capacity must be a positive whole number of bytes"
	capacityShrinks  = "spec.capacity cannot shrink below the capacity of a replica"
	specImmutable    = "volumeMode, poolClass, sharing and placement are immutable"
	sourceImmutable  = "source is immutable"
	oneSource        = "a source is either a snapshot or a volume"
	adoptedImmutable = "adopted is immutable"
	kindImmutable    = "replication.kind is immutable"
	attachmentsKind  = "attachments is for kind Attachments, and required there"
	failoverKind     = "failover is for volumes with a kind of replication"
	diskImmutable    = "replication.attachments.disk is immutable once it is set"
	blankImmutable   = "replication.attachments.blank is immutable"
	driverImmutable  = "driver is immutable"
	fsTypeImmutable  = "fsType is immutable"
	mkfsImmutable    = "mkfsOptions is immutable"
	mkfsMisplaced    = "mkfsOptions is for a filesystem that mkfs makes: not for volumeMode Block, not for fsType zfs or btrfs, and not for a copy"
	fsTypeNeeded     = "fsType is for volumeMode Filesystem, and required there"
	poolImmutable    = "pool is immutable: remove the replica and add it again"
)

func named(name string) change { return func(v *v1alpha1.Volume) { v.Name = name } }

func fsType(f v1alpha1.FSType) change { return func(v *v1alpha1.Volume) { v.Spec.FSType = f } }

func made(options string) change { return func(v *v1alpha1.Volume) { v.Spec.MkfsOptions = options } }

func block(v *v1alpha1.Volume) { v.Spec.VolumeMode, v.Spec.FSType = v1alpha1.Block, "" }

func from(snapshot, volume string) change {
	return func(v *v1alpha1.Volume) { v.Spec.Source = &v1alpha1.VolumeSource{Snapshot: snapshot, Volume: volume} }
}

// onDisk is a shared disk at a handle, with an identity.
func onDisk(handle, identity string) change {
	return all(shared, func(v *v1alpha1.Volume) {
		v.Spec.Replication.Attachments.Disk = &v1alpha1.SharedDisk{Handle: handle, Identity: identity}
	})
}

func withoutDisk(v *v1alpha1.Volume) { v.Spec.Replication.Attachments.Disk = nil }

const (
	diskHandle   = "iscsi://10.0.0.1:3260,10.0.0.2:3260/iqn.2026-01.com.example:disks/4"
	diskIdentity = "naa.6001405 0001"
)

var createCases = map[string]struct {
	change  change
	refusal string
}{
	"a filesystem volume":                              {change: all()},
	"a block volume":                                   {change: block},
	"a raw disk that several nodes write":              {change: many},
	"a filesystem that several nodes write":            {change: all(many, func(v *v1alpha1.Volume) { v.Spec.VolumeMode, v.Spec.FSType = v1alpha1.Filesystem, v1alpha1.Ext4 }), refusal: sharedRaw},
	"several nodes that write, and one that stands by": {change: all(many, func(v *v1alpha1.Volume) { v.Spec.Replication.Factor = 2 })},
	"several nodes that write a disk of which the target forgets who was shut out": {change: all(many, func(v *v1alpha1.Volume) {
		v.Spec.Replication.Attachments.Persistent = false
		v.Spec.Replication.Attachments.Disk = &v1alpha1.SharedDisk{Handle: "sim:///a", Identity: "naa.1"}
	}), refusal: sharedRaw},
	"copies that several nodes write":                 {change: all(many, replicated, func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments = nil }), refusal: sharedRaw},
	"a volume that has no place yet":                  {change: wanted()},
	"a volume named by a claim's uid":                 {change: named("pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f")},
	"a foreign name":                                  {change: named("vg-root"), refusal: nameForm},
	"a name with a claim's uid in capitals":           {change: named("pvc-0F3C1C9E-1D2B-4C3D-8E4F-5A6B7C8D9E0F"), refusal: "metadata.name"},
	"no capacity":                                     {change: capacity("0"), refusal: capacityPositive},
	"a negative capacity":                             {change: capacity("-1Gi"), refusal: capacityPositive},
	"half a byte":                                     {change: capacity("500m"), refusal: capacityPositive},
	"a capacity beyond 64 bits":                       {change: capacity("10Ei"), refusal: capacityPositive},
	"a filesystem volume without fsType":              {change: fsType(""), refusal: fsTypeNeeded},
	"a block volume with fsType":                      {change: all(block, fsType(v1alpha1.XFS)), refusal: fsTypeNeeded},
	"an fsType that Berth does not make":              {change: fsType("ntfs"), refusal: `Unsupported value: "ntfs"`},
	"options of mkfs":                                 {change: made("-I 512 -O ^metadata_csum -E stride=4,nodiscard")},
	"options of mkfs for a block volume":              {change: all(block, made("-I 512")), refusal: mkfsMisplaced},
	"options of mkfs for a copy":                      {change: all(from("", v1alpha1.VolumeName("a")), made("-I 512")), refusal: mkfsMisplaced},
	"a path as options of mkfs":                       {change: made("/dev/sda"), refusal: "spec.mkfsOptions"},
	"options with a shell command":                    {change: made("-I 512;reboot"), refusal: "spec.mkfsOptions"},
	"a factor of zero":                                {change: func(v *v1alpha1.Volume) { v.Spec.Replication.Factor = 0 }, refusal: "spec.replication.factor"},
	"a factor of nine":                                {change: func(v *v1alpha1.Volume) { v.Spec.Replication.Factor = 9 }, refusal: "spec.replication.factor"},
	"a volume from a snapshot":                        {change: from(v1alpha1.SnapshotName("a"), "")},
	"a volume from a volume":                          {change: from("", v1alpha1.VolumeName("a"))},
	"a volume from a snapshot and a volume":           {change: from(v1alpha1.SnapshotName("a"), v1alpha1.VolumeName("a")), refusal: oneSource},
	"a volume with an empty source":                   {change: from("", ""), refusal: oneSource},
	"a volume from a foreign volume":                  {change: from("", "root"), refusal: "spec.source.volume"},
	"a volume that follows by snapshots":              {change: replicated},
	"a shared disk":                                   {change: shared},
	"a shared disk with a name":                       {change: onDisk(diskHandle, diskIdentity)},
	"a shared disk whose handle names no provisioner": {change: onDisk("/dev/sdb", diskIdentity), refusal: "disk.handle"},
	"a shared disk whose handle has a space":          {change: onDisk("sim:///a b", diskIdentity), refusal: "disk.handle"},
	"a shared disk with an endless handle":            {change: onDisk("sim:///"+strings.Repeat("a", 512), diskIdentity), refusal: "disk.handle"},
	"a shared disk without an identity":               {change: onDisk(diskHandle, ""), refusal: "disk.identity"},
	"a shared disk whose identity has lines":          {change: onDisk(diskHandle, "a\nb"), refusal: "disk.identity"},
	"a shared disk whose identity ends with a space":  {change: onDisk(diskHandle, "a "), refusal: "disk.identity"},
	"a shared disk without shares": {refusal: attachmentsKind,
		change: func(v *v1alpha1.Volume) { v.Spec.Replication.Kind = v1alpha1.ReplicationAttachments }},
	"copies with shares": {refusal: attachmentsKind,
		change: all(shared, replicated)},
	"one copy with failover": {refusal: failoverKind,
		change: func(v *v1alpha1.Volume) { v.Spec.Replication.Failover = &v1alpha1.Failover{Automatic: true} }},
	"a negative bound of lost data": {refusal: "spec.replication.failover.maxDataLoss",
		change: all(replicated, func(v *v1alpha1.Volume) { v.Spec.Replication.Failover.MaxDataLoss = &metav1.Duration{Duration: -1} })},
	"no pool class": {change: func(v *v1alpha1.Volume) { v.Spec.PoolClass = "" }, refusal: "spec.poolClass"},
	"a replica without a pool": {refusal: "spec.replicas[0].pool",
		change: func(v *v1alpha1.Volume) { v.Spec.Replicas[0].Pool = "" }},
	"two replicas on one node": {change: wanted("n1", "n1"), refusal: "Duplicate value"},
	"nine replicas":            {change: wanted("1", "2", "3", "4", "5", "6", "7", "8", "9"), refusal: "must have at most 8 items"},
}

func TestAVolumeIsCreatedOnlyInAFormThatCanBeServed(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range createCases {
		t.Run(name, func(t *testing.T) {
			expect(t, env.Client.Create(t.Context(), newVolume(t, tc.change)), tc.refusal)
		})
	}
}

func TestAVolumesStatusAtCreationIsDropped(t *testing.T) {
	env := apitest.Start(t)
	v := newVolume(t, ready("n1"), recorded)
	if err := env.Client.Create(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if v.Status.Ownership != nil || v.Status.Replicas != nil {
		t.Fatalf("status at creation was kept: %+v", v.Status)
	}
}

// sized is the entry of a replica with a capacity of its own.
func sized(node, size string) change {
	q := resource.MustParse(size)
	return all(ready(node), entry(node, func(r *v1alpha1.ReplicaStatus) { r.Capacity = &q }))
}

var specCases = map[string]statusCase{
	"a volume grows": {
		before: []change{ready("n1", "n2")}, change: capacity("20Gi")},
	"a volume that no node has answered for may shrink": {
		change: capacity("5Gi")},
	"a volume does not shrink below a replica": {
		before: []change{ready("n1", "n2")}, change: capacity("9Gi"), refusal: capacityShrinks},
	"a volume shrinks to the size of the largest replica": {
		before: []change{sized("n1", "5Gi"), sized("n2", "6Gi")}, change: capacity("6Gi")},
	"a volume does not shrink below the largest replica": {
		before: []change{sized("n1", "5Gi"), sized("n2", "7Gi")}, change: capacity("6Gi"), refusal: capacityShrinks},
	"sizes are compared as quantities": {
		before: []change{sized("n1", "1024Mi")}, change: capacity("1Gi")},
	"a replica that is gone does not hold the size": {
		before: []change{sized("n1", "5Gi"), sized("n2", "10Gi"), gone("n2")}, change: capacity("5Gi")},
	"a failed replica still holds the size": {
		before: []change{sized("n1", "10Gi"), entry("n1", func(r *v1alpha1.ReplicaStatus) { r.State, r.Ready = v1alpha1.ReplicaFailed, false })},
		change: capacity("9Gi"), refusal: capacityShrinks},
	"the factor changes": {
		change: func(v *v1alpha1.Volume) { v.Spec.Replication.Factor = 3 }},
	"the claim changes": {
		change: func(v *v1alpha1.Volume) { v.Spec.ClaimRef = &v1alpha1.ClaimReference{Namespace: "a", Name: "b"} }},
	"the mode is immutable": {
		change: block, refusal: specImmutable},
	"the pool class is immutable": {
		change: func(v *v1alpha1.Volume) { v.Spec.PoolClass = "slow" }, refusal: specImmutable},
	"sharing is immutable": {
		change: func(v *v1alpha1.Volume) { v.Spec.Sharing = v1alpha1.Shared }, refusal: specImmutable},
	"placement is immutable": {
		change: func(v *v1alpha1.Volume) { v.Spec.Placement = v1alpha1.PlacementNode }, refusal: specImmutable},
	"the filesystem is immutable": {
		change: fsType(v1alpha1.XFS), refusal: fsTypeImmutable},
	"the driver stays the local one": {
		change: func(v *v1alpha1.Volume) { v.Spec.Driver = "other.example.org" }, refusal: driverImmutable},
	"a volume gets no options of mkfs later": {
		change: made("-I 512"), refusal: mkfsImmutable},
	"a blank volume gets no source later": {
		change: from(v1alpha1.SnapshotName("a"), ""), refusal: sourceImmutable},
	"a volume is not adopted later": {
		change: func(v *v1alpha1.Volume) { v.Spec.Adopted = true }, refusal: adoptedImmutable},
	"a replica is added": {
		change: wanted("n1", "n2", "n3")},
	"a replica is removed": {
		before: []change{ready("n1", "n2")}, change: wanted("n2")},
	"a replica does not change the pool": {
		change: func(v *v1alpha1.Volume) { v.Spec.Replicas[0].Pool = "other" }, refusal: poolImmutable},
	"one copy does not become several later": {
		change: func(v *v1alpha1.Volume) { v.Spec.Replication.Kind = v1alpha1.ReplicationSnapshots }, refusal: kindImmutable},
}

func TestAVolumesSpecChangesOnlyAsItsRulesAllow(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range specCases {
		t.Run(name, func(t *testing.T) {
			v := live(t, env.Client, newVolume(t), tc.before...)
			tc.change(v)
			expect(t, env.Client.Update(t.Context(), v), tc.refusal)
		})
	}
}

func TestTheOptionsOfAFilesystemStayAsItWasMade(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range map[string]struct {
		change  change
		refusal string
	}{
		"the options change": {made("-I 1024"), mkfsImmutable},
		"the options vanish": {made(""), mkfsImmutable},
		"the size changes":   {change: capacity("20Gi")},
	} {
		t.Run(name, func(t *testing.T) {
			v := live(t, env.Client, newVolume(t, made("-I 512")))
			tc.change(v)
			expect(t, env.Client.Update(t.Context(), v), tc.refusal)
		})
	}
}

// diskCases are changes of the disk that a volume names.
var diskCases = map[string]struct {
	made, change change
	refusal      string
}{
	"it becomes known":                 {shared, onDisk(diskHandle, diskIdentity), ""},
	"it becomes another one":           {onDisk(diskHandle, diskIdentity), onDisk("sim:///a", diskIdentity), diskImmutable},
	"it is to say another name":        {onDisk(diskHandle, diskIdentity), onDisk(diskHandle, "naa.6001405 0002"), diskImmutable},
	"it is forgotten":                  {onDisk(diskHandle, diskIdentity), withoutDisk, diskImmutable},
	"it is forgotten with the shares":  {onDisk(diskHandle, diskIdentity), func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments = nil }, attachmentsKind},
	"it is said to have been blank":    {onDisk(diskHandle, diskIdentity), func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments.Blank = true }, blankImmutable},
	"it is said to have had data":      {all(shared, func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments.Blank = true }), func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments.Blank = false }, blankImmutable},
	"the number of its shares changes": {onDisk(diskHandle, diskIdentity), func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments.MaxShares++ }, ""},
}

func TestTheDiskOfAVolumeIsNamedOnce(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range diskCases {
		t.Run(name, func(t *testing.T) {
			v := live(t, env.Client, newVolume(t, tc.made))
			tc.change(v)
			expect(t, env.Client.Update(t.Context(), v), tc.refusal)
		})
	}
}
