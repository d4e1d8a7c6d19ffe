//go:build helm

package leave

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// file is an example that the tutorial lets its reader save: the name is in the text before it.
var file = regexp.MustCompile("(?s)This is `([a-z]+\\.yaml)`[^`]*?(?:`paths`)?[^`]*?:\n\n```yaml\n(.*?)```")

const tutorialNode = "NODE" // as the page calls it, in lower case

// learner follows the tutorial on an API server without nodes. It does what controllers and kubelets would do,
// so that each command of the page runs and ends as it does on a whole cluster.
type learner struct {
	shell
	t *testing.T
}

func (l learner) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// before does what must be there before a command, and after what the cluster makes of it.
var before, after = map[string]func(learner){
	"kubectl wait --for=condition=Ready bpc/tutorial":  learner.serveClass,
	"kubectl rollout status statefulset/db":            learner.runDatabase,
	"kubectl wait --for=jsonpath='{.status.capacity.s": learner.growClaim,
}, map[string]func(learner){
	"helm install berth": learner.report,
}

func (l learner) report() {
	l.must(l.Create(l.t.Context(), &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(tutorialNode)}}))
}

func (l learner) serveClass() {
	c := &v1alpha1.PoolClass{}
	l.must(l.Get(l.t.Context(), client.ObjectKey{Name: "tutorial"}, c))
	if c.Spec.LVM == nil || c.Spec.LVM.Create == nil {
		l.t.Error("the class makes no pool")
	}
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNodesServe})
	l.must(l.Status().Update(l.t.Context(), c))
}

// runDatabase makes the claim and the pod of the StatefulSet, as its controller does.
func (l learner) runDatabase() {
	set := &appsv1.StatefulSet{}
	l.must(l.Get(l.t.Context(), client.ObjectKey{Namespace: "tutorial", Name: "db"}, set))
	claim := set.Spec.VolumeClaimTemplates[0]
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tutorial", Name: "db-0"}, Spec: set.Spec.Template.Spec}
	pod.Spec.Volumes = []corev1.Volume{{Name: claim.Name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-db-0"}}}}
	claim.Namespace, claim.Name = "tutorial", claim.Name+"-db-0"
	l.must(client.IgnoreAlreadyExists(l.Create(l.t.Context(), &claim)))
	l.must(client.IgnoreAlreadyExists(l.Create(l.t.Context(), pod)))
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(&claim), &claim))
	claim.Status.Phase = corev1.ClaimBound // else it may not grow
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}
	l.must(l.Status().Update(l.t.Context(), &claim))
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		CurrentReplicas: 1, UpdatedReplicas: 1, CurrentRevision: "db-1", UpdateRevision: "db-1"}
	l.must(l.Status().Update(l.t.Context(), set))
}

func (l learner) growClaim() {
	claim := &corev1.PersistentVolumeClaim{}
	l.must(l.Get(l.t.Context(), client.ObjectKey{Namespace: "tutorial", Name: "data-db-0"}, claim))
	claim.Status.Capacity = claim.Spec.Resources.Requests
	l.must(l.Status().Update(l.t.Context(), claim))
}

func call(steps map[string]func(learner), command string, l learner) {
	for prefix, step := range steps {
		if strings.HasPrefix(command, prefix) {
			step(l)
		}
	}
}

// follow runs one command of the page. A pod without a node executes nothing, but kubectl has to find it.
func (l learner) follow(command string) {
	l.t.Helper()
	call(before, command, l)
	command = strings.ReplaceAll(command, " "+tutorialNode+" ", " "+strings.ToLower(tutorialNode)+" ")
	if strings.HasPrefix(command, "kubectl exec ") {
		cmd := exec.CommandContext(l.t.Context(), "bash", "-c", command)
		cmd.Env = l.environment
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "pod db-0 does not have a host assigned") {
			l.t.Errorf("%s: %v\n%s", command, err, out)
		}
		return
	}
	if strings.HasPrefix(command, "kubectl delete namespace ") {
		command += " --wait=false" // no controller empties it here
	}
	l.run(l.t, command)
	call(after, command, l)
}

func TestEachCommandOfTheTutorialWorks(t *testing.T) {
	s := newShell(t)
	text, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	saved := file.FindAllStringSubmatch(string(text), -1)
	if len(saved) != 2 {
		t.Fatalf("the page has %d files to save", len(saved))
	}
	for _, f := range saved {
		if err := os.WriteFile(filepath.Join(dir, f[1]), []byte(f[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plugins := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(plugins, "kubectl-berth"), "../../cmd/kubectl-berth").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i, variable := range s.environment {
		if path, is := strings.CutPrefix(variable, "PATH="); is {
			s.environment[i] = "PATH=" + plugins + ":" + path
		}
	}
	l := learner{s, t}
	l.must(s.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(tutorialNode)}}))
	commands, ran := page(t, "../../docs/tutorial.md"), 0
	for _, heading := range []string{"Install Berth", "Give it a disk", "Start a database", "See where the data is", "Lose the pod, keep the data", "Give it more room", "Clean up"} {
		if len(commands[heading]) == 0 {
			t.Fatalf("the tutorial has no commands below %q", heading)
		}
		for _, command := range commands[heading] {
			l.follow(strings.ReplaceAll(command, "-f ", "-f "+dir+"/"))
			ran++
		}
	}
	all := 0
	for _, below := range commands {
		all += len(below)
	}
	if ran != all {
		t.Errorf("%d commands ran, and the page has %d", ran, all)
	}
}
