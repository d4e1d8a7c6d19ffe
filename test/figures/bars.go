package figures

import (
	"fmt"
	"html"
	"io"
	"maps"
	"slices"
)

// Bar is one horizontal bar, made of segments that follow each other.
type Bar struct {
	Name     string
	Segments []Segment
}

// Segment is a part of a bar.
type Segment struct {
	Name  string
	Value float64
}

// colours of segments, in order; chosen to differ in lightness too.
var colours = []string{"#1b4965", "#62b6cb", "#bee9e8", "#f4a259", "#bc4b51", "#8cb369", "#5b5f97", "#cccccc"}

const (
	chartWidth = 900
	labelWidth = 220
	barHeight  = 26
	barGap     = 12
)

// Bars draws bars on one scale as SVG, with a legend and the sum at each end.
func Bars(w io.Writer, title, unit string, bars []Bar) {
	longest, legend := extent(bars)
	height := 70 + len(bars)*(barHeight+barGap) + (len(legend)+2)/3*22
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", chartWidth, height)
	fmt.Fprintf(w, `<rect width="100%%" height="100%%" fill="white"/><text x="12" y="26" font-size="16">%s</text>`+"\n", html.EscapeString(title))
	scale := float64(chartWidth-labelWidth-90) / max(longest, 1e-9)
	for i, bar := range bars {
		drawBar(w, bar, 44+i*(barHeight+barGap), scale, unit, legend)
	}
	top := 60 + len(bars)*(barHeight+barGap)
	for _, name := range slices.SortedFunc(maps.Keys(legend), func(a, b string) int { return legend[a] - legend[b] }) {
		i := legend[name]
		x, y := 12+i%3*295, top+i/3*22
		fmt.Fprintf(w, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			x, y, colours[i%len(colours)], x+18, y+11, html.EscapeString(name))
	}
	fmt.Fprintln(w, "</svg>")
}

func drawBar(w io.Writer, bar Bar, y int, scale float64, unit string, legend map[string]int) {
	fmt.Fprintf(w, `<text x="12" y="%d">%s</text>`+"\n", y+17, html.EscapeString(bar.Name))
	x, sum := float64(labelWidth), 0.0
	for _, s := range bar.Segments {
		fmt.Fprintf(w, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n",
			x, y, s.Value*scale, barHeight, colours[legend[s.Name]%len(colours)])
		x += s.Value * scale
		sum += s.Value
	}
	fmt.Fprintf(w, `<text x="%.1f" y="%d">%.2f %s</text>`+"\n", x+6, y+17, sum, html.EscapeString(unit))
}

// extent returns the longest sum, and the position of each segment's name in the
// legend: the order in which the names first appear.
func extent(bars []Bar) (longest float64, legend map[string]int) {
	legend = map[string]int{}
	for _, bar := range bars {
		sum := 0.0
		for _, s := range bar.Segments {
			sum += s.Value
			if _, known := legend[s.Name]; !known {
				legend[s.Name] = len(legend)
			}
		}
		longest = max(longest, sum)
	}
	return longest, legend
}
