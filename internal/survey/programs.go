package survey

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
)

// The labels that the chart gives the workloads.
const (
	componentLabel = "app.kubernetes.io/component"
	versionLabel   = "app.kubernetes.io/version"
)

// The components of Berth, by the chart's labels.
const (
	Controller     = "controller"
	Agent          = "agent"
	Scheduler      = "scheduler"
	DiskController = "disk-controller"
	DiskAgent      = "disk-agent"
	Guard          = "guard"
)

// Components are all components, each with the name of many in a sentence, in the order of the answers.
var Components = []struct{ Name, Many string }{
	{Controller, "controllers"}, {Agent, "agents"}, {Scheduler, "schedulers"},
	{DiskController, "disk controllers"}, {DiskAgent, "disk agents"}, {Guard, "guards"},
}

// Program is one workload of Berth.
type Program struct {
	Component, Version string
	// Pods that are ready, of all that there should be.
	Pods Count
	// Updated pods are of the workload's newest template.
	Updated int
	// Once says that there is a pod on each node that is chosen, so that none is needed where none is chosen.
	Once bool
}

// Programs are the workloads that run Berth.
type Programs struct {
	// Namespace that they were looked for in.
	Namespace string
	All       []Program
}

// ProgramsOf are Berth's workloads among those of a namespace.
func ProgramsOf(namespace string, deployments []appsv1.Deployment, daemonSets []appsv1.DaemonSet) Programs {
	p := Programs{Namespace: namespace}
	for i := range deployments {
		d := &deployments[i]
		p.All = append(p.All, Program{
			Component: d.Labels[componentLabel], Version: cmp.Or(d.Labels[versionLabel], "unknown"),
			Pods: Count{Good: int(d.Status.ReadyReplicas), Of: int(d.Status.Replicas)}, Updated: int(d.Status.UpdatedReplicas),
		})
	}
	for i := range daemonSets {
		d := &daemonSets[i]
		p.All = append(p.All, Program{
			Component: d.Labels[componentLabel], Version: cmp.Or(d.Labels[versionLabel], "unknown"), Once: true,
			Pods: Count{Good: int(d.Status.NumberReady), Of: int(d.Status.DesiredNumberScheduled)}, Updated: int(d.Status.UpdatedNumberScheduled),
		})
	}
	return p
}

// Of returns the workloads of one component.
func (p Programs) Of(component string) (found []Program) {
	for _, program := range p.All {
		if program.Component == component {
			found = append(found, program)
		}
	}
	return found
}

// Ready returns the count of a component's pods, and nil for a component that is not installed.
func (s *Status) Ready(component string) *Count {
	switch component {
	case Controller:
		return &s.Controllers
	case Agent:
		return &s.Agents
	}
	return *s.optional(component)
}

// optional is the field of a component that an installation can do without.
func (s *Status) optional(component string) **Count {
	switch component {
	case Scheduler:
		return &s.Schedulers
	case DiskController:
		return &s.DiskControllers
	case DiskAgent:
		return &s.DiskAgents
	default:
		return &s.Guards
	}
}

func (s *Status) programs(p Programs) {
	for _, component := range Components {
		found := p.Of(component.Name)
		if len(found) == 0 {
			continue
		}
		if s.Ready(component.Name) == nil {
			*s.optional(component.Name) = &Count{}
		}
		pods, once := s.Ready(component.Name), true
		for _, program := range found {
			pods.Good += program.Pods.Good
			pods.Of += program.Pods.Of
			once = once && program.Once
		}
		if pods.Good >= pods.Of && (once || pods.Good > 0) {
			continue
		}
		means := ""
		if component.Name == Guard {
			means = " (the node of another one is fenced, or cannot renew its lease, and gets no shared disk)"
		}
		s.problem("%d of %d %s are ready%s: see kubectl get pods -n %s -l %s=%s -o wide",
			pods.Good, pods.Of, component.Many, means, p.Namespace, componentLabel, component.Name)
	}
	switch {
	case len(p.Of(Controller)) == 0:
		s.problem("there is no controller in namespace %s: is Berth installed in another one? --berth-namespace names it", p.Namespace)
	case len(p.Of(Agent)) == 0:
		s.problem("there are no agents in namespace %s", p.Namespace)
	}
}
