//go:build helm

package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// object is what these tests read of a rendered object.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Replicas    int      `json:"replicas"`
		Selector    selector `json:"selector"`
		PodSelector selector `json:"podSelector"`

		UpdateStrategy struct {
			Type string `json:"type"`
		} `json:"updateStrategy"`
		Template struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec pod `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type pod struct {
	SecurityContext struct {
		SeccompProfile struct {
			Type string `json:"type"`
		} `json:"seccompProfile"`
	} `json:"securityContext"`
	Containers     []container `json:"containers"`
	InitContainers []container `json:"initContainers"`
}

type container struct {
	Name            string    `json:"name"`
	Image           string    `json:"image"`
	RestartPolicy   string    `json:"restartPolicy"`
	StartupProbe    *struct{} `json:"startupProbe"`
	SecurityContext struct {
		Privileged             bool `json:"privileged"`
		ReadOnlyRootFilesystem bool `json:"readOnlyRootFilesystem"`
	} `json:"securityContext"`
}

// all returns the containers of a pod in the order in which they start.
func (p pod) all() []container { return slices.Concat(p.InitContainers, p.Containers) }

// objects returns the objects of a kind that values render to, by name.
func objects(t *testing.T, values string, kinds ...string) map[string]object {
	t.Helper()
	found := map[string]object{}
	for _, text := range render(t, values) {
		var o object
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if slices.Contains(kinds, o.Kind) {
			found[o.Metadata.Name] = o
		}
	}
	return found
}

func TestEveryPodFiltersSystemCallsAndWritesNothingToItsImage(t *testing.T) {
	for name, values := range cases {
		all := objects(t, values, "Deployment", "DaemonSet")
		if len(all) < 2 {
			t.Errorf("%s: %d workloads", name, len(all))
		}
		for _, o := range all {
			spec := o.Spec.Template.Spec
			if got := spec.SecurityContext.SeccompProfile.Type; got != "RuntimeDefault" {
				t.Errorf("%s: %s has the seccomp profile %q", name, o.Metadata.Name, got)
			}
			for _, c := range spec.all() {
				if !c.SecurityContext.ReadOnlyRootFilesystem {
					t.Errorf("%s: %s of %s may write to its image", name, c.Name, o.Metadata.Name)
				}
			}
		}
	}
}

func TestOnlyWhatTouchesDisksAndThePodsOfOthersIsPrivileged(t *testing.T) {
	for name, want := range map[string][]string{"default": {"agent"}, "everything": {"agent", "guard", "poold"}} {
		var got []string
		for _, o := range objects(t, cases[name], "Deployment", "DaemonSet") {
			for _, c := range o.Spec.Template.Spec.all() {
				if c.SecurityContext.Privileged {
					got = append(got, c.Name)
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: privileged are %q, want %q", name, got, want)
		}
	}
}

// A CSI sidecar ends if the controller's socket is not there half a minute after it started.
func TestTheSidecarsStartOnceTheControllerServes(t *testing.T) {
	for name, deployment := range map[string]string{"default": "berth-controller", "everything": "other-controller"} {
		p := objects(t, cases[name], "Deployment")[deployment].Spec.Template.Spec
		if len(p.InitContainers) != 1 || len(p.Containers) < 2 {
			t.Fatalf("%s: first start %v, then %v", name, p.InitContainers, p.Containers)
		}
		if c := p.InitContainers[0]; c.Name != "controller" || c.RestartPolicy != "Always" || c.StartupProbe == nil {
			t.Errorf("%s: the sidecars wait for %+v", name, c)
		}
	}
}

// Helm installs hooks of a test only when it is asked to test.
func TestTheTestOfAnInstallationIsAHook(t *testing.T) {
	for _, text := range render(t, cases["default"]) {
		if strings.Contains(text, "component: test") != strings.Contains(text, "helm.sh/hook: test\n") {
			t.Errorf("of a test or no hook of one:\n%s", text)
		}
	}
}

func TestAMirrorHasEveryImage(t *testing.T) {
	for _, o := range objects(t, cases["mirror"], "Deployment", "DaemonSet") {
		for _, c := range o.Spec.Template.Spec.all() {
			if !strings.HasPrefix(c.Image, "mirror.example.org/all/") {
				t.Errorf("%s of %s comes from %s", c.Name, o.Metadata.Name, c.Image)
			}
		}
	}
}

func TestTheControllersOfSharedDisksAreThereOnlyIfAskedFor(t *testing.T) {
	if _, there := objects(t, cases["default"], "Deployment")["berth-disk-controller"]; there {
		t.Error("they are there by default")
	}
	d := objects(t, cases["everything"], "Deployment")["other-disk-controller"]
	var names []string
	for _, c := range d.Spec.Template.Spec.all() {
		names = append(names, c.Name)
	}
	if want := []string{"controller", "provisioner", "resizer", "attacher"}; d.Spec.Replicas != 3 || !slices.Equal(names, want) {
		t.Errorf("there are %d, of the containers %v", d.Spec.Replicas, names)
	}
}

// A guard whose update followed the agent's would leave the node without one, or end its writers.
func TestAGuardIsThereOnlyIfAskedForAndIsNotReplacedWithTheAgent(t *testing.T) {
	if all := objects(t, cases["default"], "DaemonSet"); len(all) != 1 {
		t.Errorf("by default each node runs %v", slices.Sorted(maps.Keys(all)))
	}
	guard := objects(t, cases["everything"], "DaemonSet")["other-guard"]
	if guard.Spec.UpdateStrategy.Type != "OnDelete" {
		t.Errorf("a guard is replaced by %q", guard.Spec.UpdateStrategy.Type)
	}
	for _, c := range guard.Spec.Template.Spec.all() {
		if !strings.HasSuffix(c.Image, "/berth/agent:older") {
			t.Errorf("the guard runs %s", c.Image)
		}
	}
}

func TestTheImageOfGuardsIsHeldByItsTagItsDigestOrBoth(t *testing.T) {
	own, agents := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("2", 64)
	for set, want := range map[string]string{
		"guard.image.tag=older":                                       "older",
		"guard.image.digest=" + own:                                   "new@" + own,
		"guard.image.tag=older,guard.image.digest=" + own:             "older@" + own,
		"agent.image.digest=" + agents:                                "new@" + agents,
		"guard.image.tag=older,agent.image.digest=" + agents:          "older",
		"guard.image.digest=" + own + ",agent.image.digest=" + agents: "new@" + own,
	} {
		out, err := helm(t, "--set", "imageRegistry=localhost,guard.enabled=true,agent.image.tag=new,"+set, "--show-only", "templates/guard.yaml")
		if err != nil || !strings.Contains(out, `image: "localhost/berth/agent:`+want+`"`) {
			t.Errorf("%s: %v: %s", set, err, out)
		}
	}
}

// A person runs `berth replicate check` there.
func TestTheContainerOfPooldReadsTheAgentsCertificateWhereGuardsRun(t *testing.T) {
	for set, want := range map[string]int{"guard.enabled=true": 1, "guard.enabled=false": 0, "guard.enabled=true,disk.enabled=true": 0} {
		out, err := helm(t, "--set", "imageRegistry=localhost,agent.poold=separate,"+set, "--show-only", "templates/agent.yaml")
		if got := strings.Count(out, "mountPath: /run/berth-guard, readOnly: true"); err != nil || got != want {
			t.Errorf("%s: %d mounts, want %d, %v", set, got, want, err)
		}
	}
}

// A selector that matches no pod would protect nothing, and open nothing.
func TestBudgetsAndPoliciesSelectPodsThatExist(t *testing.T) {
	deployed := objects(t, cases["everything"], "Deployment", "DaemonSet")
	budgets := objects(t, cases["everything"], "PodDisruptionBudget")
	if len(budgets) != 3 {
		t.Errorf("there are budgets for %v, want those of both controllers and the scheduler's", slices.Sorted(maps.Keys(budgets)))
	}
	for name, b := range budgets {
		d, ok := deployed[name]
		if !ok || !maps.Equal(b.Spec.Selector.MatchLabels, d.Spec.Selector.MatchLabels) || d.Spec.Replicas < 2 {
			t.Errorf("budget %s is for %v, and the pods have %v", name, b.Spec.Selector.MatchLabels, d.Spec.Template.Metadata.Labels)
		}
	}
	policies := objects(t, cases["everything"], "NetworkPolicy")
	if len(policies) != len(deployed) {
		t.Errorf("there are policies for %v", slices.Sorted(maps.Keys(policies)))
	}
	for name, p := range policies {
		if d, ok := deployed[name]; !ok || !maps.Equal(p.Spec.PodSelector.MatchLabels, d.Spec.Selector.MatchLabels) {
			t.Errorf("policy %s is for %v, and the pods have %v", name, p.Spec.PodSelector.MatchLabels, d.Spec.Template.Metadata.Labels)
		}
	}
	if got := objects(t, cases["lab"], "PodDisruptionBudget"); len(got) != 0 {
		t.Errorf("a single controller has the budget %v", got)
	}
}

// A cluster without guards gets neither ports nor rights for questions between nodes.
func TestNodesAndControllersKnowEachOtherOnlyWhereGuardsRun(t *testing.T) {
	for name, want := range map[string]bool{"default": false, "everything": true} {
		all := strings.Join(render(t, cases[name]), "")
		for _, part := range []string{"certificatesigningrequests", "--peer-address", "--sign-for", "POD_IP", "-authorit", "name: peers"} {
			if got := strings.Contains(all, part); got != want {
				t.Errorf("%s: whether %q is there: %t", name, part, got)
			}
		}
	}
}

// The guard takes the word of an agent that every epoch is closed. Only that of shared disks knows.
func TestOneAgentOfANodeSpeaksToTheGuard(t *testing.T) {
	for name, want := range map[string]string{"other": "other-disk-agent", "guarded": "other-agent"} {
		further := []string{}
		if name == "guarded" {
			further = []string{"--set", "disk.enabled=false"}
		}
		var got []string
		for _, text := range render(t, cases["everything"], further...) {
			if strings.Contains(text, "--guard-socket=") {
				_, after, _ := strings.Cut(text, "\n  name: ")
				agent, _, _ := strings.Cut(after, "\n")
				got = append(got, agent)
			}
		}
		if !slices.Equal(got, []string{want}) {
			t.Errorf("%q speak to the guard, want %s", got, want)
		}
	}
	if _, err := helm(t, "--set", "imageRegistry=localhost", "--set", "disk.enabled=true"); err == nil || !strings.Contains(err.Error(), "needs guard.enabled") {
		t.Errorf("shared disks without guards: %v", err)
	}
}
