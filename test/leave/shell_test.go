//go:build helm

package leave

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"berth.dev/berth/api/v1alpha1"
)

// shell runs commands against an API server of its own.
type shell struct {
	client.Client
	environment []string
}

func newShell(t *testing.T) shell {
	t.Helper()
	assets, helm := os.Getenv("KUBEBUILDER_ASSETS"), os.Getenv("BERTH_TEST_HELM")
	if assets == "" || helm == "" {
		t.Fatal("KUBEBUILDER_ASSETS or BERTH_TEST_HELM is not set: run make test-leave")
	}
	control := &envtest.Environment{BinaryAssetsDirectory: assets, ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute}
	control.ControlPlane.Etcd = &envtest.Etcd{}
	control.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true") // the data dies with the test
	config, err := control.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := control.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, control.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return shell{Client: c, environment: append(os.Environ(), "KUBECONFIG="+kubeconfig, "HELM_CACHE_HOME="+filepath.Join(dir, "cache"),
		"PATH="+strings.Join([]string{filepath.Dir(helm), assets, os.Getenv("PATH")}, ":"))}
}

// run runs a command of a page, with this source in place of a registry. Nothing waits for pods,
// which no node would start.
func (s shell) run(t *testing.T, command string) string {
	t.Helper()
	command = released.ReplaceAllString(command, "../../charts/$1")
	if strings.Contains(command, "charts/berth ") {
		command += " --set imageRegistry=localhost"
	}
	command = waits.ReplaceAllString(command, "$1")
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", command)
	cmd.Env = s.environment
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// waits is the flag by which Helm waits for pods.
var waits = regexp.MustCompile(` --wait( |$)`)

// page has the commands of a page by the heading that they are below.
func page(t *testing.T, path string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	commands, heading, inside := map[string][]string{}, "", false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "```bash":
			inside = true
		case line == "```":
			inside = false
		case inside:
			commands[heading] = append(commands[heading], line)
		case strings.HasPrefix(line, "## "):
			heading = strings.TrimPrefix(line, "## ")
		}
	}
	if len(commands) == 0 {
		t.Fatalf("%s has no commands", path)
	}
	return commands
}
