package oversight

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

// judgeWrite asks the machine itself, when its epoch is called fenced, whether it may still write.
func (s *sim) judgeWrite(o *overseer, old, next *v1alpha1.Volume) {
	was, err := record.From(old)
	is, failed := record.From(next)
	if err != nil || failed != nil {
		s.fail("the record cannot be read: %v, %v", err, failed)
		return
	}
	if was.Epoch != is.Epoch || !was.Primary.Phase.Open() {
		if is.Primary.Phase.Open() && !was.Primary.Phase.Open() || was.Epoch.Number > is.Epoch.Number {
			s.fail("epoch %v of a controller replaced %v", is.Epoch, was.Epoch)
		}
		return
	}
	if is.Primary.Phase != ownership.Fenced {
		return
	}
	m := s.machine(was.Primary.Node)
	s.fences[s.proves(m.name)]++
	if m.up && m.holds && m.epoch == was.Epoch {
		s.fail("%s is called fenced and may write into epoch %v", m.name, m.epoch)
	}
	if !o.ordered && time.Since(o.before) < ownership.WatchFirst {
		s.fail("%s was fenced %s after the contact was broken", m.name, time.Since(o.before))
	}
}

// proves is what the Node says about itself, and the contract if it says nothing.
func (s *sim) proves(node string) ownership.ProofKind {
	if proofs := proofsOf(s.now().nodes[node]); len(proofs) > 0 {
		return proofs[0].Kind
	}
	return ownership.SelfFenced
}

// judgeEnd: a pod is ended only when the record shows that its epoch is over.
func (s *sim) judgeEnd(p *corev1.Pod) {
	s.ended++
	v, err := record.From(s.now().volume)
	if err != nil {
		s.fail("the record cannot be read: %v", err)
		return
	}
	m := s.machine(p.Spec.NodeName)
	if m.up && m.holds && m.pod == p.Name {
		s.fail("pod %s was ended, and %s owns epoch %v", p.Name, m.name, m.epoch)
	}
	if v.Primary.Phase.Open() && p.Labels["epoch"] == v.Epoch.ID {
		s.fail("pod %s was ended before epoch %v", p.Name, v.Epoch)
	}
}
