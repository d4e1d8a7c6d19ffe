//go:build e2e && thorough

package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// secret is what the pods of this test write.
const secret = "the-first-tenants-secret"

// The test reads the target's file on this machine, without the product's code.
func TestTheNextClaimOfALUNReadsNothingOfTheLastOne(t *testing.T) {
	b := beginFor(t, 10*limit)
	s := newSAN(b)
	file := s.backing()
	class := pools{b}.storageClass("san", func(sc *storagev1.StorageClass) {
		sc.Provisioner, sc.VolumeBindingMode = v1alpha1.DiskDriverName, ptr.To(storagev1.VolumeBindingImmediate)
		sc.Parameters = map[string]string{"poolClass": b.namespace, "maxShares": "2"}
	})
	lun := &v1alpha1.LUN{
		ObjectMeta: metav1.ObjectMeta{Name: "array-" + b.namespace},
		Spec:       v1alpha1.LUNSpec{Disk: s.disk, Capacity: resource.MustParse("256Mi"), PoolClass: b.namespace, Persistent: true},
	}
	b.create(lun)
	t.Cleanup(func() { b.remove(lun) })

	for _, c := range []struct {
		name    string
		options []cluster.ClaimOption
		// write fills a part of the volume with lines, as a file or as it is.
		write string
	}{
		{name: "files", write: "yes " + secret + " | head -c 33554432 > " + cluster.MountPath + "/file; sync"},
		{name: "raw", options: []cluster.ClaimOption{cluster.Raw}, write: "yes " + secret + " | dd of=" + cluster.DevicePath + " bs=1M seek=100 iflag=fullblock count=32 conv=fsync"},
	} {
		claim := b.claim(c.name, class, "200Mi", c.options...)
		pod := b.run(c.name, claim)
		b.awaitRunning(pod)
		if isRaw(claim) {
			if found := b.sh(pod, "tr -d '\\000' < "+cluster.DevicePath+" | head -c 64 | od -c"); strings.Count(found, "\n") > 1 {
				t.Errorf("the next pod reads what it did not write:\n%s", found)
			}
		}
		b.sh(pod, c.write)
		if dirt := notZero(t, file); dirt < 32<<20 || !contains(t, file, secret) {
			t.Fatalf("%s: the target's file has %d bytes: it is not the disk that the pod wrote to", c.name, dirt)
		}
		b.remove(pod)
		b.remove(claim)
		b.must(cluster.Await(b.within(), b.Cluster, lun, "available again", func(l *v1alpha1.LUN) bool {
			return l.Status.State == v1alpha1.LUNAvailable
		}), "waiting for the wipe")
		if dirt := notZero(t, file); dirt > 0 {
			t.Errorf("%s: the LUN is Available, and %d bytes of its disk are not zero", c.name, dirt)
		}
		for _, node := range []string{"node1", "node2", "node3"} {
			if s.attached(node) {
				t.Errorf("%s: %s still has the disk", c.name, node)
			}
		}
	}
}

// notZero counts the bytes of a file that are not zero.
func notZero(t *testing.T, file string) (dirt int64) {
	t.Helper()
	each(t, file, func(piece []byte) { dirt += int64(len(piece) - bytes.Count(piece, []byte{0})) })
	return dirt
}

// contains says whether a file has a word in one of its pieces. A word that is cut by a piece's end does not count.
func contains(t *testing.T, file, word string) (found bool) {
	t.Helper()
	each(t, file, func(piece []byte) { found = found || bytes.Contains(piece, []byte(word)) })
	return found
}

func each(t *testing.T, file string, do func(piece []byte)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	piece := make([]byte, 1<<20)
	for {
		n, err := f.Read(piece)
		do(piece[:n])
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
