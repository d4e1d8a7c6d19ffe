package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

// canary is in every planted secret. It must not be in any bundle.
const canary = "hunter2canary"

// jwt has the form of a service account's token, with the canary in the place of the signature.
const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0." + canary

var pem = "-----BEGIN RSA PRIVATE KEY-----\n" + canary + "\n-----END RSA PRIVATE KEY-----"

// planted are objects that have a secret wherever users of Kubernetes put them.
func planted() []client.Object {
	hidden := map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"password":"` + canary + `"}}`,
		"vault.example.org/token":                          canary,
	}
	container := corev1.Container{
		Name: "main", Image: "shop/db:1", Command: []string{"run", "--password=" + canary}, Args: []string{canary},
		Env:           []corev1.EnvVar{{Name: "PASSWORD", Value: canary}, {Name: "INNOCENT", Value: canary}},
		LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{HTTPHeaders: []corev1.HTTPHeader{{Name: "Authorization", Value: canary}}}}},
		Lifecycle:     &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{canary}}}},
		VolumeMounts:  []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
	}
	spec := corev1.PodSpec{Containers: []corev1.Container{container}, InitContainers: []corev1.Container{container}, Volumes: []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "db"}}},
		{Name: "key", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "vault.example.org", VolumeAttributes: map[string]string{"role": canary}}}},
		{Name: "flex", VolumeSource: corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "smb", Options: map[string]string{"user": canary}}}},
	}}
	pod := func(namespace, name string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: hidden}, Spec: spec}
		p.Status.Message = "cannot reach postgres://admin:" + canary + "@db/shop"
		return p
	}
	agent := pod("berth-system", "berth-agent-1")
	agent.Labels = map[string]string{"app.kubernetes.io/name": "berth"}
	agent.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 3}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "berth-system", Name: "berth-controller", Annotations: hidden, Labels: agent.Labels}}
	deployment.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: hidden}, Spec: spec}
	config := func(name string, labels map[string]string, data string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "berth-system", Name: name, Labels: labels}, Data: map[string]string{"file": data}, BinaryData: map[string][]byte{"x": []byte(canary)}}
	}
	mine := config("berth-config", agent.Labels, "password: "+canary)
	mine.BinaryData = nil
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Annotations: hidden}}
	foreign := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	foreign.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "nfs.example.org", VolumeAttributes: map[string]string{"mountOptions": canary}}
	own := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "own", Annotations: hidden}}
	own.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: "own"}
	volume := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f", Annotations: hidden}}
	volume.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: "n1", Message: "Authorization: Bearer " + canary}}
	event := func(name, reason, message string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Reason: reason, Message: message, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "db-0"}}
	}
	return []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "berth-system", Name: "tls"}, Data: map[string][]byte{"key": []byte(canary)}},
		pod("shop", "db-0"), agent, deployment, mine, config("others", nil, canary), claim, foreign, own, volume,
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Provisioner: "nfs.example.org", Parameters: map[string]string{"mount": canary}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: v1alpha1.LocalDriverName, Parameters: map[string]string{"poolClass": "fast", "chapPassword": canary}},
		event("probe", "Unhealthy", "probe failed: "+canary), event("mount", "FailedMount", "mount failed: password="+canary),
	}
}

func reader(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"VolumeSnapshot", "VolumeSnapshotContent"} {
		gvk := of("snapshot.storage.k8s.io", "v1", k)
		scheme.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind(k+"List"), &unstructured.UnstructuredList{})
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

// noisy is a log with credentials in each form that programs write.
func noisy(_ context.Context, _ client.ObjectKey, _ string, previous bool) (io.ReadCloser, error) {
	if previous {
		return nil, errors.New("previous log is gone, token=" + canary)
	}
	return io.NopCloser(strings.NewReader(strings.Join([]string{
		"the volume was made", "token " + jwt, `{"password":"` + canary + `","node":"n1"}`, "Authorization: Bearer " + canary,
		"iscsi chap_secret = " + canary, "GET https://me:" + canary + "@registry.example.org/", pem, `msg="{\"apiKey\":\"` + canary + `\"}"`,
	}, "\n"))), nil
}

// collect returns the files of a bundle by path, without the folder.
func collect(t *testing.T, o Options) (map[string]string, Manifest) {
	t.Helper()
	o.Manifest.Namespace, o.Manifest.Made, o.Folder, o.Progress = "berth-system", time.Unix(0, 0).UTC(), "b", io.Discard
	var out bytes.Buffer
	m, err := Write(t.Context(), &out, o)
	if err != nil {
		t.Fatal(err)
	}
	return unpack(t, &out), m
}

func unpack(t *testing.T, from io.Reader) map[string]string {
	t.Helper()
	gz, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "b/")] = string(text)
	}
}

func TestNoPlantedSecretGetsIntoABundle(t *testing.T) {
	report := Report{Name: "status.json", Make: func(context.Context) ([]byte, error) { return []byte(`{"message": "password=` + canary + `"}`), nil }}
	files, m := collect(t, Options{Reader: reader(t, interceptor.Funcs{}, planted()...), Logs: noisy, Reports: []Report{report}})
	for path, text := range files {
		if at := strings.Index(text, canary); at >= 0 {
			t.Errorf("%s has a secret: …%s", path, text[max(0, at-80):at+len(canary)])
		}
	}
	for path, told := range map[string]string{ // what a person needs is there
		"objects/pods.yaml":                   "claimName: db",
		"objects/deployments.yaml":            "image: shop/db:1",
		"objects/persistentvolumes.yaml":      "volumeHandle: own",
		"objects/storageclasss.yaml":          "poolClass: fast",
		"objects/events.yaml":                 "reason: FailedMount",
		"objects/volumes.yaml":                "node: n1",
		"objects/persistentvolumeclaims.yaml": "name: db",
		"logs/berth-agent-1/main.log":         "the volume was made",
		"reports/status.json":                 "message",
	} {
		if !strings.Contains(files[path], told) {
			t.Errorf("%s lacks %q: %s", path, told, files[path])
		}
	}
	if strings.Contains(files["objects/persistentvolumes.yaml"], "foreign") || strings.Contains(files["objects/configmaps.yaml"], "others") {
		t.Error("objects of others are in the bundle")
	}
	if len(m.Missing) != 1 || m.Missing[0].Path != "logs/berth-agent-1/main.previous.log" {
		t.Errorf("missing %+v", m.Missing)
	}
}

func TestAConfigMapThatIsNotBerthsLosesItsData(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": canary}, "binaryData": map[string]any{"b": canary}}}
	text, err := json.Marshal(o)
	if !Redact(o, "berth-system") {
		t.Fatal("it stays out")
	}
	if after, failed := json.Marshal(o); err != nil || failed != nil || strings.Contains(string(after), canary) || !strings.Contains(string(text), canary) {
		t.Errorf("%s", after)
	}
	if Redact(&unstructured.Unstructured{Object: map[string]any{"kind": "Secret"}}, "berth-system") {
		t.Error("a Secret is taken")
	}
}

func TestABundleHasWhatCanBeReadAndNamesTheRest(t *testing.T) {
	broken := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		switch list.GetObjectKind().GroupVersionKind().Kind {
		case "PodList":
			return errors.New("pods are forbidden, Authorization: Bearer " + canary)
		case "VolumeSnapshotList":
			return &meta.NoKindMatchError{}
		}
		return c.List(ctx, list, o...)
	}}
	report := Report{Name: "doctor.json", Make: func(context.Context) ([]byte, error) { return nil, errors.New("no pods") }}
	files, _ := collect(t, Options{Reader: reader(t, broken, planted()...), Logs: noisy, Reports: []Report{report}})
	var m Manifest
	if err := json.Unmarshal([]byte(files[ManifestName]), &m); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"objects/pods.yaml": "pods are forbidden", "objects/volumesnapshots.yaml": "the cluster has no objects of this kind", "reports/doctor.json": "no pods",
	}
	for _, p := range m.Missing {
		if !strings.HasPrefix(p.Reason, want[p.Path]) || want[p.Path] == "" || strings.Contains(p.Reason, canary) {
			t.Errorf("missing %+v", p)
		}
		delete(want, p.Path)
	}
	if len(want) > 0 || files["objects/volumes.yaml"] == "" || len(m.Files) == 0 {
		t.Errorf("not said to be missing: %v; files %v", want, m.Files)
	}
}

func TestABundleIsBounded(t *testing.T) {
	endless := func(context.Context, client.ObjectKey, string, bool) (io.ReadCloser, error) {
		return io.NopCloser(io.LimitReader(zeros{}, 3*MaxFile)), nil
	}
	files, m := collect(t, Options{Reader: reader(t, interceptor.Funcs{}, planted()...), Logs: endless})
	if n := len(files["logs/berth-agent-1/main.log"]); n != MaxFile {
		t.Errorf("a log has %d bytes", n)
	}
	if last := m.Files[len(m.Files)-1]; !last.Cut {
		t.Errorf("nothing says that it was cut: %+v", last)
	}
	a := newArchive(io.Discard, "b", Manifest{})
	a.room = 25
	for range 5 {
		if err := a.add("x", make([]byte, 10), false); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.manifest.Files) != 2 || len(a.manifest.Missing) != 3 {
		t.Errorf("%d files, %d missing", len(a.manifest.Files), len(a.manifest.Missing))
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestWhatIsNoCredentialStays(t *testing.T) {
	for _, text := range []string{
		"volume pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f of claim shop/db", "pool vg0 has 1Gi free, 2Gi asked", "https://berth.dev/docs",
	} {
		if got := Scrub(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
