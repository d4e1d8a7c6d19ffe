package report

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/provision"
)

const (
	mib = int64(1 << 20)
	gib = int64(1 << 30)
)

type poolOption func(*provision.Pool)

// pool is a volume group of 10 GiB with 4 MiB extents, empty.
func pool(name string, options ...poolOption) provision.Pool {
	p := provision.Pool{PoolRef: provision.PoolRef{Type: "LVM", Name: name}, Total: 10 * gib, Free: 10 * gib, Unit: 4 * mib}
	for _, o := range options {
		o(&p)
	}
	return p
}

func free(n int64) poolOption { return func(p *provision.Pool) { p.Free = n } }

func broken(p *provision.Pool) { p.Problem = "a physical volume is missing" }

func seen(ps ...provision.Pool) pools.Latest { return pools.Latest{Pools: ps} }

type classOption func(*v1alpha1.PoolClass)

// class is a PoolClass over some volume groups, on all nodes.
func class(name string, groups []string, options ...classOption) v1alpha1.PoolClass {
	c := v1alpha1.PoolClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: groups}},
	}
	for _, o := range options {
		o(&c)
	}
	return c
}

func spare(q string) classOption {
	return func(c *v1alpha1.PoolClass) { v := resource.MustParse(q); c.Spec.Spare = &v }
}

func onlyOn(label string) classOption {
	return func(c *v1alpha1.PoolClass) {
		c.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{label: "yes"}}
	}
}

func storage(name, poolClass string) storagev1.StorageClass {
	return storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: v1alpha1.LocalDriverName,
		Parameters: map[string]string{"poolClass": poolClass},
	}
}

// facts of a node n1 with the label ssd=yes.
func facts(classes []v1alpha1.PoolClass, storage ...storagev1.StorageClass) Facts {
	node := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"ssd": "yes"}}}
	return Facts{Node: node, PoolClasses: classes, StorageClasses: storage}
}
