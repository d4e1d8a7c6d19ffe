package pki

import (
	"encoding/base64"
	"fmt"
)

// Kubeconfig returns a kubeconfig that reaches server as the given user. Its
// certificate is kept under name; the kubeconfig itself is not kept.
func (a *Authority) Kubeconfig(name, server string, user Subject) ([]byte, error) {
	pair, err := a.Issue(name, user)
	if err != nil {
		return nil, err
	}
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: lab
clusters:
- name: lab
  cluster:
    server: %q
    certificate-authority-data: %s
users:
- name: lab
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: lab
  context: {cluster: lab, user: lab}
`, server, b64(a.CertPEM()), b64(pair.Cert), b64(pair.Key)), nil
}

// WriteKubeconfig writes a kubeconfig as the file NAME.kubeconfig of the
// authority's directory and returns its path.
func (a *Authority) WriteKubeconfig(name, server string, user Subject) (string, error) {
	data, err := a.Kubeconfig(name, server, user)
	if err != nil {
		return "", err
	}
	path := a.Path(name + ".kubeconfig")
	if err := writeFile(path, data); err != nil {
		return "", fmt.Errorf("writing kubeconfig %s: %w", name, err)
	}
	return path, nil
}
