package main

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/ownership"
)

// root is the repository, seen from here.
var root = filepath.Join("..", "..")

// quoted is a word or a message in a cell of a table.
var quoted = regexp.MustCompile("`([^`]+)`")

// inspect visits what the sources of a package say, without its tests.
func inspect(t *testing.T, folder string, visit func(ast.Node) bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parse(root, path)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f.tree, visit)
	}
}

// constants returns the values of the package's string constants whose names, or the names of whose types,
// match.
func constants(t *testing.T, folder string, match *regexp.Regexp) map[string]bool {
	t.Helper()
	values := map[string]bool{}
	inspect(t, folder, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		kind := ""
		if name, is := spec.Type.(*ast.Ident); is {
			kind = name.Name
		}
		for i, name := range spec.Names {
			if i >= len(spec.Values) || !match.MatchString(name.Name) && !match.MatchString(kind) {
				continue
			}
			if text, is := spec.Values[i].(*ast.BasicLit); is && text.Kind == token.STRING {
				value, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				values[value] = true
			}
		}
		return true
	})
	return values
}

// row is a row of a table in a document: the heading of its first column, and its cells.
type row struct {
	of    string
	cells []string
}

// rows returns the rows of all tables in a document.
func rows(text string) (all []row) {
	of := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			of = ""
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		switch first := strings.TrimSpace(cells[0]); {
		case of == "":
			of = first
		case !strings.HasPrefix(first, "--"):
			all = append(all, row{of, cells})
		}
	}
	return all
}

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// troubleshooting returns the names that the page explains, by the heading of their column, and the
// messages that it quotes.
func troubleshooting(t *testing.T) (explained map[string]map[string]bool, messages []string) {
	t.Helper()
	explained = map[string]map[string]bool{}
	add := func(column, cell string) {
		if explained[column] == nil {
			explained[column] = map[string]bool{}
		}
		for _, name := range quoted.FindAllStringSubmatch(cell, -1) {
			explained[column][name[1]] = true
		}
	}
	for _, r := range rows(page(t)) {
		switch r.of {
		case "you see":
			for _, m := range quoted.FindAllStringSubmatch(r.cells[0], -1) {
				messages = append(messages, m[1])
			}
		case "condition":
			add("condition", r.cells[0])
			add("reason", r.cells[1])
		default:
			add(r.of, r.cells[0])
		}
	}
	return explained, messages
}

// same fails for each name that only one side has.
func same(t *testing.T, what string, code, page map[string]bool) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(code)) {
		if !page[name] {
			t.Errorf("docs/troubleshooting.md has no row for the %s %s", what, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(page)) {
		if !code[name] {
			t.Errorf("docs/troubleshooting.md explains the %s %s, which Berth does not write", what, name)
		}
	}
}

func together(sets ...map[string]bool) map[string]bool {
	all := map[string]bool{}
	for _, s := range sets {
		maps.Copy(all, s)
	}
	return all
}

func TestTroubleshootingExplainsEachConditionReasonAnswerAndEvent(t *testing.T) {
	const api = "api/v1alpha1"
	explained, _ := troubleshooting(t)
	same(t, "condition", constants(t, api, regexp.MustCompile("^Condition")), explained["condition"])
	same(t, "reason", together(
		constants(t, api, regexp.MustCompile("^(Reason|OrphanReason)")),
		constants(t, "internal/provision", regexp.MustCompile("^Reason$")),
		constants(t, "internal/decide/wish", regexp.MustCompile("^(Disagrees|Missing|Contested|Failing)$")),
	), explained["reason"])
	same(t, "health", constants(t, api, regexp.MustCompile("^PoolHealth$")), explained["health"])
	answers := map[string]bool{}
	for r := ledger.Fits; r.String() != "Unknown"; r++ {
		answers[r.String()] = true
		if meaning := "| `" + r.String() + "` | " + r.Message() + " |"; !strings.Contains(page(t), meaning) {
			t.Errorf("docs/troubleshooting.md lacks %q", meaning)
		}
	}
	same(t, "answer", answers, explained["answer"])

	changes := map[string]bool{}
	for reason := range constants(t, api, regexp.MustCompile("^PoolChangeReason$")) {
		changes["Pool"+reason] = true
	}
	same(t, "event", together(changes,
		constants(t, "internal/decide/notice", regexp.MustCompile("^Reason")),
		constants(t, api, regexp.MustCompile("^Reason(ThinPool.*|Claim(Kept|Released)|Releas.*|TooManyNodesGone|NodeReturned)$")),
		constants(t, "internal/controller/oversight", regexp.MustCompile("^podEnded$")),
		constants(t, "internal/controller/certificates", regexp.MustCompile("^ReasonAuthority")),
		map[string]bool{
			string(ownership.WriterFenced): true, string(ownership.FenceRequested): true,
			string(ownership.RecoveryPointLost): true, string(ownership.RecordBehind): true,
		},
	), explained["event"])
}

// verb is a place in a message for a particular.
var verb = regexp.MustCompile(`%\[\d\]\w`)

// waits returns the reasons for which a volume waits or is refused, each with its message. An Action is made
// where its reason is known, by one of two functions.
func waits(t *testing.T) map[string]string {
	t.Helper()
	made := map[string]bool{string(ownership.BeingAttached): true} // its Why is a variable
	messages := map[string]string{}
	inspect(t, "internal/ownership", func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if reason := waitsFor(n); reason != "" {
				made[reason] = true
			}
		case *ast.KeyValueExpr:
			reason, isName := n.Key.(*ast.Ident)
			text, isText := n.Value.(*ast.BasicLit)
			if isName && isText && text.Kind == token.STRING {
				message, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				messages[reason.Name] = message
			}
		}
		return true
	})
	maps.DeleteFunc(messages, func(reason, _ string) bool { return !made[reason] })
	return messages
}

// waitsFor is the reason in a call wait(Why{Reason: ...}) or refuse(...), empty if it is no such call.
func waitsFor(call *ast.CallExpr) (reason string) {
	f, is := call.Fun.(*ast.Ident)
	if !is || f.Name != "wait" && f.Name != "refuse" {
		return ""
	}
	ast.Inspect(call, func(n ast.Node) bool {
		if field, is := n.(*ast.KeyValueExpr); is {
			if name, is := field.Value.(*ast.Ident); is && field.Key.(*ast.Ident).Name == "Reason" {
				reason = name.Name
			}
		}
		return true
	})
	return reason
}

func TestTroubleshootingExplainsWhatAVolumeWaitsForInTheWordsOfBerth(t *testing.T) {
	explained, _ := troubleshooting(t)
	reasons := map[string]bool{}
	for reason, message := range waits(t) {
		reasons[reason] = true
		if says := "| `" + reason + "` | " + verb.ReplaceAllString(message, "...") + " |"; !strings.Contains(page(t), says) {
			t.Errorf("docs/troubleshooting.md lacks %q", says)
		}
	}
	same(t, "reason to wait", reasons, explained["why"])
}

// others are what Kubernetes and Linux say, in the words of docs/troubleshooting.md.
var others = []string{
	"WaitForFirstConsumer", "WaitForPodScheduled", "ExternalProvisioning", "ProvisioningFailed", "VolumeResizeFailed",
	"node(s) did not have enough free storage", "volume node affinity conflict", "didn't match PersistentVolume's node affinity",
	"driver name local.berth.dev not found in the list of registered CSI drivers", "only dynamically provisioned pvc can be resized",
	"forbidden", "FileSystemResizePending", "No space left on device", "df", "df -i", "kubernetes.io/pvc-protection",
	"FailedCreate", "ImagePullBackOff", "ReadWriteMany", "ReadOnlyMany", "Failed", "Insufficient berth.dev/volumes",
}

func TestTheMessagesThatTroubleshootingQuotesAreBerthsOrThoseOfOthers(t *testing.T) {
	var source strings.Builder
	for _, folder := range []string{"internal", "api"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			source.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, messages := troubleshooting(t)
	if len(messages) < 30 {
		t.Fatalf("the page quotes %d messages", len(messages))
	}
	for _, m := range messages {
		if slices.Contains(others, m) {
			continue
		}
		for part := range strings.SplitSeq(m, "...") {
			if !strings.Contains(source.String(), strings.Trim(part, ` "`)) {
				t.Errorf("docs/troubleshooting.md quotes %q, and no message has %q", m, part)
			}
		}
	}
}
