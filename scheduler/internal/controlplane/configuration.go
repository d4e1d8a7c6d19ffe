package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	sigsyaml "sigs.k8s.io/yaml"
)

// Kubeconfig writes a new file in dir with a connection to the API server.
func Kubeconfig(dir string, config *rest.Config) (string, error) {
	content := clientcmdapi.NewConfig()
	host := config.Host
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	content.Clusters["test"] = &clientcmdapi.Cluster{Server: host, CertificateAuthorityData: config.CAData}
	content.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	content.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	content.CurrentContext = "test"
	data, err := clientcmd.Write(*content)
	if err != nil {
		return "", fmt.Errorf("making a kubeconfig: %w", err)
	}
	return write(dir, "kubeconfig-*", data)
}

// Connect writes a scheduler's configuration to a new file in dir, with a
// connection, and without limits or an election: a scheduler that was killed
// would hold up the next one for its lease.
func Connect(dir, configuration, kubeconfig string) (string, error) {
	var content map[string]any
	if err := sigsyaml.Unmarshal([]byte(configuration), &content); err != nil {
		return "", fmt.Errorf("reading the scheduler's configuration: %w\n%s", err, configuration)
	}
	if content["profiles"] == nil {
		return "", fmt.Errorf("the scheduler's configuration has no profiles:\n%s", configuration)
	}
	content["clientConnection"] = map[string]any{"kubeconfig": kubeconfig, "qps": 1000, "burst": 1000}
	content["leaderElection"] = map[string]any{"leaderElect": false}
	data, err := sigsyaml.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("making the scheduler's configuration: %w", err)
	}
	return write(dir, "scheduler-*.yaml", data)
}

func write(dir, pattern string, data []byte) (string, error) {
	file, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return "", fmt.Errorf("making a file in %s: %w", dir, err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Write(data); err != nil {
		return "", fmt.Errorf("writing %s: %w", filepath.Base(file.Name()), err)
	}
	return file.Name(), nil
}
