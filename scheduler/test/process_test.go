package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// process is a program that runs until the test ends.
type process struct {
	cmd  *exec.Cmd
	done chan error
}

// start starts a program. Its log is shown when the test fails.
func start(t *testing.T, environment []string, path string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(path, args...), done: make(chan error, 1)} //nolint:forbidigo,noctx // it is killed by the test, not by a context
	log, err := os.CreateTemp(t.TempDir(), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Env = append(os.Environ(), environment...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", filepath.Base(path), tail(log.Name()))
		}
	})
	return p
}

// kill ends the process at once, as a lost machine would, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	p.done <- <-p.done
}

// tail is the end of a file.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(data, []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-25):], []byte("\n")))
}

// kubeconfig writes a file with a connection to the API server.
func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	host := config.Host
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	file.Clusters["test"] = &clientcmdapi.Cluster{Server: host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	file.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	file.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}
