package shell

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
)

// logs judges what the disks executed: once a later epoch has written, no earlier one does, and what a pod was
// told of is there.
func (o *oracle) logs() {
	for _, v := range o.w.volumes {
		if v.target == nil {
			continue
		}
		log, err := v.target.Log()
		if err != nil {
			o.w.fail("the log of %s: %v", v.short, err)
		}
		o.mu.Lock()
		seen, there := map[lineage.Epoch]string{}, map[string]bool{}
		var last lineage.Epoch
		for i, w := range log {
			node, known := seen[w.Epoch]
			ended, over := o.over[w.Epoch]
			switch {
			case over && i >= ended:
				o.fails("%s, write %d: epoch %v writes after its end", v.short, i, w.Epoch)
			case o.w.plan.together && (!known || node == w.Node): // in any order
			case known && node != w.Node:
				o.fails("%s, write %d: epoch %v is written by %s and %s", v.short, i, w.Epoch, node, w.Node)
			case known && w.Epoch != last:
				o.fails("%s, write %d: epoch %v writes again after epoch %v", v.short, i, w.Epoch, last)
			case !known && w.Epoch.Number <= last.Number:
				o.fails("%s, write %d: epoch %v follows epoch %v", v.short, i, w.Epoch, last)
			}
			seen[w.Epoch], last = w.Node, w.Epoch
			there[w.Data] = true
		}
		if i := slices.IndexFunc(o.acked[v.name], func(data string) bool { return !there[data] }); i >= 0 {
			o.fails("%s: a pod was told that %q is written, and the disk does not have it", v.short, o.acked[v.name][i])
		}
		o.mu.Unlock()
	}
}

// restless says why the cluster is not at rest; empty if it is.
func (o *oracle) restless() string {
	for _, v := range o.w.volumes {
		r := one[v1alpha1.Volume](o.w.api, client.ObjectKey{Name: v.name}).Status.Ownership
		if r == nil {
			return v.short + " has no record"
		}
		pods := o.w.pods(v)
		if len(pods) != o.w.plan.pods() {
			return fmt.Sprintf("%s has %d pods", v.short, len(pods))
		}
		for _, p := range pods {
			if why := o.starves(v, r, p); why != "" {
				return why
			}
		}
	}
	return ""
}

// starves says why a pod does not write its volume.
func (o *oracle) starves(v *volume, r *v1alpha1.Ownership, p *corev1.Pod) string {
	m := o.w.machine(p.Spec.NodeName)
	says := fmt.Sprintf("the record says %s of %q in epoch %v", r.Primary.Phase, r.Primary.Node, epochOf(r))
	if o.w.plan.together {
		says = fmt.Sprintf("the record says %+v", r.Writers)
	}
	if m == nil || m.deleted.Load() {
		return fmt.Sprintf("%s: pod %s has no node; %s", v.short, p.Name, says)
	}
	var c *container
	said := ""
	o.w.locked(func() {
		if k := m.kernels[v.name]; k != nil && k.containers[p.UID] != nil {
			x := *k.containers[p.UID]
			c = &x
		}
		said = o.w.said[m.name+" "+v.short]
	})
	switch {
	case c == nil && p.Status.Phase == corev1.PodRunning:
		return fmt.Sprintf("%s: pod %s on %s keeps a dead mount (%s); %s", v.short, p.Name, m.name, said, says)
	case c == nil:
		return fmt.Sprintf("%s: pod %s on %s has no volume (%s); %s", v.short, p.Name, m.name, said, says)
	case time.Since(c.wrote) > 6*time.Second:
		return fmt.Sprintf("%s: pod %s on %s cannot write in epoch %v; %s", v.short, p.Name, m.name, c.epoch, says)
	case writerOn(r, m.name).Phase != v1alpha1.PrimaryActive:
		return fmt.Sprintf("%s: pod %s on %s writes in epoch %v, and %s", v.short, p.Name, m.name, c.epoch, says)
	}
	if o.w.plan.copies {
		return o.same(v, r, m)
	}
	return ""
}
