package storageclass

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheParametersOfSharedDisks(t *testing.T) {
	san := Parameters{PoolClass: "san"}
	for name, test := range map[string]struct {
		given   map[string]string
		block   bool
		want    DiskParameters
		refused string // part of the message; empty means accepted
	}{
		"nothing more than the class":              {given: nil, want: DiskParameters{Parameters: san, MaxShares: 1, Factor: 1}},
		"two shares have one replica":              {given: map[string]string{"maxShares": "2"}, want: DiskParameters{Parameters: san, MaxShares: 2, Factor: 2}},
		"fewer replicas than shares":               {given: map[string]string{"maxShares": "3", "maxMountReplicaCount": "1"}, want: DiskParameters{Parameters: san, MaxShares: 3, Factor: 2}},
		"no replica":                               {given: map[string]string{"maxShares": "3", "maxMountReplicaCount": "0"}, want: DiskParameters{Parameters: san, MaxShares: 3, Factor: 1}},
		"all shares that a Volume has room for":    {given: map[string]string{"maxShares": "8"}, want: DiskParameters{Parameters: san, MaxShares: 8, Factor: 8}},
		"the whole filesystem is checked":          {given: map[string]string{"enableFileSystemConsistencyCheck": "true"}, want: DiskParameters{Parameters: san, MaxShares: 1, Factor: 1, Check: true}},
		"standbys make way":                        {given: map[string]string{"enableMountReplicaReductionOnDiskPressure": "True"}, want: DiskParameters{Parameters: san, MaxShares: 1, Factor: 1, Yields: true}},
		"both said to be off":                      {given: map[string]string{"enableMountReplicaReductionOnDiskPressure": "false", "enableFileSystemConsistencyCheck": "FALSE"}, want: DiskParameters{Parameters: san, MaxShares: 1, Factor: 1}},
		"an administrator decides about failovers": {given: map[string]string{"automaticFailover": "false"}, want: DiskParameters{Parameters: san, MaxShares: 1, Factor: 1, OnDemand: true}},
		"failovers said to be automatic":           {given: map[string]string{"automaticFailover": "True"}, want: DiskParameters{Parameters: san, MaxShares: 1, Factor: 1}},
		"a block device":                           {given: map[string]string{"maxShares": "2"}, block: true, want: DiskParameters{Parameters: san, MaxShares: 2, Factor: 2}},
		"options of mkfs for the default":          {given: map[string]string{"mkfsOptions": "-I 512"}, want: DiskParameters{Parameters: Parameters{PoolClass: "san", MkfsOptions: "-I 512"}, MaxShares: 1, Factor: 1}},
		"no share is refused":                      {given: map[string]string{"maxShares": "0"}, refused: `parameter "maxShares": 0 is not from 1 to 8`},
		"nine shares are refused":                  {given: map[string]string{"maxShares": "9"}, refused: `"maxShares": 9 is not from 1 to 8`},
		"half a share is refused":                  {given: map[string]string{"maxShares": "1.5"}, refused: `"1.5" is not a whole number`},
		"an empty number is refused":               {given: map[string]string{"maxShares": ""}, refused: `"" is not a whole number`},
		"more than an integer holds is refused":    {given: map[string]string{"maxShares": "4294967298"}, refused: "is not a whole number"},
		"as many replicas as shares are refused":   {given: map[string]string{"maxShares": "2", "maxMountReplicaCount": "2"}, refused: `"maxMountReplicaCount": 2 is not from 0 to 1`},
		"a replica without a share is refused":     {given: map[string]string{"maxMountReplicaCount": "1"}, refused: `"maxMountReplicaCount": 1 is not from 0 to 0`},
		"fewer than no replica is refused":         {given: map[string]string{"maxShares": "2", "maxMountReplicaCount": "-1"}, refused: `-1 is not from 0 to 1`},
		"a word that is no answer is refused":      {given: map[string]string{"enableFileSystemConsistencyCheck": "yes"}, refused: `"yes" is neither true nor false`},
		"no answer is refused":                     {given: map[string]string{"enableFileSystemConsistencyCheck": ""}, refused: "is empty"},
		"a failover that is neither is refused":    {given: map[string]string{"automaticFailover": "off"}, refused: `parameter "automaticFailover": "off" is neither true nor false`},
		"an empty word on failovers is refused":    {given: map[string]string{"automaticFailover": ""}, refused: `parameter "automaticFailover" is empty: use true or false`},
		"the field is no parameter":                {given: map[string]string{"failover.automatic": "false"}, refused: `enableMountReplicaReductionOnDiskPressure, automaticFailover)`},
		"the check of a block device is refused":   {given: map[string]string{"enableFileSystemConsistencyCheck": "true"}, block: true, refused: "volumeMode Filesystem"},
		"options of mkfs for a block device":       {given: map[string]string{"mkfsOptions": "-I 512"}, block: true, refused: "volumeMode Filesystem"},
		"options of another filesystem's mkfs":     {given: map[string]string{"mkfsOptions": "-I 512", "csi.storage.k8s.io/fstype": "xfs"}, refused: "-I"},
		"a filesystem of pools is refused":         {given: map[string]string{"csi.storage.k8s.io/fstype": "zfs"}, refused: "a shared disk has ext4 or xfs"},
		"an unknown key is named with the known":   {given: map[string]string{"skuName": "Premium"}, refused: `unknown parameter "skuName" (known: poolClass, csi.storage.k8s.io/fstype, mkfsOptions, maxShares, maxMountReplicaCount,`},
		"a key in another case gets a suggestion":  {given: map[string]string{"maxshares": "2"}, refused: `did you mean "maxShares"?`},
		"the provisioner's own parameters are read": {given: map[string]string{"csi.storage.k8s.io/pvc/name": "data", "csi.storage.k8s.io/pvc/namespace": "shop"},
			want: DiskParameters{Parameters: Parameters{PoolClass: "san", ClaimName: "data", ClaimNamespace: "shop"}, MaxShares: 1, Factor: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			given := maps.Clone(test.given)
			if given == nil {
				given = map[string]string{}
			}
			given["poolClass"] = "san"
			got, err := ParseDisk(given, test.block)
			if test.refused != "" {
				if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("%v, want one about %s", err, test.refused)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestSeveralNodesWriteADiskOfAClassWithSharesAndWithoutReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		given   map[string]string
		refused string
	}{
		"two shares, no replica":      {given: map[string]string{"maxShares": "2", "maxMountReplicaCount": "0"}},
		"one share is refused":        {given: map[string]string{"maxShares": "1"}, refused: `needs parameter "maxShares" from 2 on`},
		"a replica is refused":        {given: map[string]string{"maxShares": "2", "maxMountReplicaCount": "1"}, refused: `needs parameter "maxMountReplicaCount" 0`},
		"the replicas of the default": {given: map[string]string{"maxShares": "3"}, refused: `needs parameter "maxMountReplicaCount" 0`},
	} {
		test.given["poolClass"] = "san"
		p, err := ParseDisk(test.given, true)
		if err != nil {
			t.Fatal(err)
		}
		if err = p.ManyWriters(); (err == nil) != (test.refused == "") || err != nil && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.refused)) {
			t.Errorf("%s: %v, want one about %q", name, err, test.refused)
		}
	}
}

func TestAClassOfLocalVolumesHasNoParametersOfSharedDisks(t *testing.T) {
	_, err := Parse(map[string]string{"poolClass": "fast", "maxShares": "2"})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), `unknown parameter "maxShares"`) {
		t.Error(err)
	}
}
