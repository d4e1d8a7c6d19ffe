//go:build helm

package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A page with a value that does not exist, or does nothing, would send its reader in circles.
func TestTheSettingsForEachDistributionReachTheAgent(t *testing.T) {
	text, err := os.ReadFile("../../docs/distributions.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("the page has no settings")
	}
	for _, block := range blocks {
		settings, _, _ := strings.Cut(block, "```")
		path := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		_, directory, _ := strings.Cut(strings.TrimSpace(settings[strings.LastIndex(strings.TrimSpace(settings), "\n"):]), ": ")
		agent := strings.Join(render(t, path, "--set", "imageRegistry=localhost", "--show-only", "templates/agent.yaml"), "")
		if !strings.Contains(agent, "hostPath: {path: "+directory+",") {
			t.Errorf("the agent does not get %s by\n%s", directory, settings)
		}
	}
}
