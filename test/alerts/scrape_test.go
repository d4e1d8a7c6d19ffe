package alerts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// targets has the labels that Prometheus adds to the series of a scrape, unless the series has them.
var targets = map[string]map[string]string{
	"agent.prom":           {"job": "berth-agent", "node": "n1"},
	"controller.prom":      {"job": "berth-controller", "node": "n1"},
	"disk-controller.prom": {"job": "berth-disk-controller", "node": "n1"},
	"kubelet.prom":         {"job": "kubelet", "node": "n1"},
}

// scraped returns what Prometheus has after it has read the scrapes.
func scraped(t *testing.T) history {
	t.Helper()
	h := history{}
	for file, target := range targets {
		f, err := os.Open(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		decoder := expfmt.SampleDecoder{Dec: expfmt.NewDecoder(f, expfmt.NewFormat(expfmt.TypeTextPlain)), Opts: &expfmt.DecodeOptions{}}
		for {
			var samples model.Vector
			if err := decoder.Decode(&samples); err != nil {
				break
			}
			for _, s := range samples {
				all := labels.NewBuilder(labels.FromMap(target))
				for name, value := range s.Metric {
					all.Set(string(name), string(value))
				}
				h.add(all.Labels(), func(time.Duration) float64 { return float64(s.Value) })
			}
		}
	}
	return h
}

func TestEveryQueryOfTheDashboardFindsSomething(t *testing.T) {
	text, err := os.ReadFile(chart + "/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			Targets []struct {
				Expression string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	if len(dashboard.Panels) == 0 {
		t.Fatal("the dashboard has no panels")
	}
	h, seen := scraped(t), map[int]bool{}
	for _, p := range dashboard.Panels {
		if seen[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		seen[p.ID] = true
		for _, target := range p.Targets {
			if found := query(t, h, target.Expression, begin); len(found) == 0 {
				t.Errorf("panel %q finds nothing: %s", p.Title, target.Expression)
			}
		}
	}
}

// A mistake in a name or a label would silence an alert for ever.
func TestEveryAlertReadsWhatIsScraped(t *testing.T) {
	h := scraped(t)
	for name, a := range alerts(t) {
		e, err := parser.NewParser(parser.Options{}).ParseExpr(a.Expression)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
			selector, ok := node.(*parser.VectorSelector)
			if !ok || selector.Name == "up" { // which Prometheus makes
				return nil
			}
			var match []string
			for _, m := range selector.LabelMatchers {
				if m.Name != model.MetricNameLabel {
					match = append(match, m.Name+`!=""`)
				}
			}
			exists := selector.Name + "{" + strings.Join(match, ",") + "}"
			if found := query(t, h, exists, begin); len(found) == 0 {
				t.Errorf("%s reads %s, and no scrape has it", name, exists)
			}
			return nil
		})
	}
}
