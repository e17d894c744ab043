//go:build life

package life

import (
	"fmt"
	"strings"
	"time"
)

// plot draws the memory while a MachineSet grows and shrinks again, as SVG.
func plot(l load) []byte {
	const width, height, margin = 720.0, 300.0, 40.0
	points := append([]sample{}, l.Up.memory...)
	for _, one := range l.Down.memory {
		points = append(points, sample{l.Up.wall + one.at, one.gib})
	}
	last, top := (l.Up.wall + l.Down.wall).Seconds(), 0.5
	for max(l.Up.peak(), l.Down.peak()) > top {
		top += 0.5
	}
	x := func(at time.Duration) float64 { return margin + at.Seconds()/last*(width-2*margin) }
	y := func(gib float64) float64 { return height - margin - gib/top*(height-2*margin) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="white"/>
`, width, height)
	for gib := 0.0; gib <= top; gib += 0.5 {
		fmt.Fprintf(&b, `<path d="M%.0f %.1fH%.0f" stroke="#ddd"/><text x="4" y="%.1f">%.1f GiB</text>`+"\n", margin+10, y(gib), width-margin, y(gib)+4, gib)
	}
	for _, mark := range []struct {
		at   time.Duration
		text string
	}{{0, fmt.Sprintf("%d wanted", l.Size)}, {l.Up.wall, fmt.Sprintf("all Provisioned after %.0f s; none wanted", l.Up.wall.Seconds())}} {
		fmt.Fprintf(&b, `<path d="M%.1f %.1fV%.1f" stroke="#999" stroke-dasharray="4"/><text x="%.1f" y="%.1f">%s</text>`+"\n",
			x(mark.at), y(0), y(top), x(mark.at)+4, y(top)-6, mark.text)
	}
	b.WriteString(`<polyline fill="none" stroke="#06c" stroke-width="1.5" points="`)
	for _, one := range points {
		fmt.Fprintf(&b, "%.1f,%.1f ", x(one.at), y(one.gib))
	}
	fmt.Fprintf(&b, "\"/>\n<text x=\"%.0f\" y=\"%.0f\">%.0f s</text>\n</svg>\n", width-margin-30, height-margin+18, last)
	return []byte(b.String())
}
