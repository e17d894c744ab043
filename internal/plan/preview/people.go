package preview

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/machine-iac/machine-iac-operator/internal/engine"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// signs are the prefixes of planned changes.
var signs = map[engine.Action]string{
	engine.ActionCreate:  "+",
	engine.ActionUpdate:  "~",
	engine.ActionDelete:  "-",
	engine.ActionReplace: "-/+",
	engine.ActionForget:  ".",
}

// Escape sequences.
const (
	bold   = "\x1b[1m"
	faint  = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
)

var signColours = map[engine.Action]string{
	engine.ActionCreate: green, engine.ActionUpdate: yellow, engine.ActionDelete: red, engine.ActionReplace: red,
	engine.ActionForget: red,
}

// painter writes a plan with or without colours.
type painter struct {
	out     bytes.Buffer
	colours bool
}

func (p *painter) paint(colour, text string) string {
	if !p.colours || text == "" {
		return text
	}
	return colour + text + reset
}

// people prints the preview as text.
func people(p *Preview, colours bool) []byte {
	w := &painter{colours: colours}
	if len(p.Sets) > 0 {
		table := tabwriter.NewWriter(&w.out, 0, 0, 3, ' ', 0)
		for _, row := range rows(p) {
			fmt.Fprintln(table, strings.Join(row, "\t"))
		}
		table.Flush() //nolint:errcheck // writes to a buffer cannot fail
		fmt.Fprintln(&w.out)
	}
	for _, set := range p.Sets {
		w.live(set)
		if set.Live == nil || set.Live.made() > 0 {
			w.set(set)
		}
	}
	if live := p.Summary.Live; live != nil {
		fmt.Fprintln(&w.out, w.paint(bold, "Live: "+liveSummaryLine(live)))
		return w.out.Bytes()
	}
	fmt.Fprintln(&w.out, w.paint(bold, "Preview: "+summaryLine(p.Summary)))
	return w.out.Bytes()
}

func (p *painter) set(set *Set) {
	fmt.Fprintln(&p.out, p.paint(bold, heading(set)))
	fmt.Fprintln(&p.out)
	if len(set.Resources) == 0 {
		fmt.Fprint(&p.out, "  No changes.\n\n")
	}
	p.resources("  ", set.Resources)
	for _, note := range notes(set) {
		fmt.Fprintln(&p.out, "  "+print.Printable(note))
	}
	if len(notes(set)) > 0 {
		fmt.Fprintln(&p.out)
	}
}

func (p *painter) resources(indent string, resources []Resource) {
	for _, resource := range resources {
		fmt.Fprintf(&p.out, "%s%s %s", indent, p.paint(signColours[resource.Action], signs[resource.Action]),
			p.paint(bold, print.Printable(resource.Address)))
		if resource.Unsure {
			fmt.Fprint(&p.out, "  "+p.paint(faint, "# "+unsureText))
		}
		fmt.Fprintln(&p.out)
		p.attributes(indent+"    ", resource.Attributes)
		fmt.Fprintln(&p.out)
	}
}

// maxAligned bounds the length of names whose values are aligned.
const maxAligned = 48

// attributes prints one attribute a line, with aligned values.
func (p *painter) attributes(indent string, attributes []Attribute) {
	width := 0
	for _, one := range attributes {
		if len(one.Path) <= maxAligned {
			width = max(width, len(one.Path))
		}
	}
	for _, one := range attributes {
		value := p.value(one.Value)
		switch {
		case one.Before != nil && one.Action == engine.ActionDelete:
			value = p.value(*one.Before) + " -> null"
		case one.Before != nil:
			value = p.value(*one.Before) + " -> " + value
		}
		if one.Forces {
			value += "  " + p.paint(red, "# "+forcesText)
		}
		var lines []string
		if one.Before != nil {
			lines = lineDiff(*one.Before, one.Value)
		}
		if lines != nil {
			value = "..."
		}
		fmt.Fprintf(&p.out, "%s%s %-*s = %s\n", indent, p.paint(signColours[one.Action], signs[one.Action]), width,
			print.Printable(one.Path), value)
		for _, line := range lines {
			fmt.Fprintf(&p.out, "%s      %s\n", indent, print.Printable(line))
		}
	}
}

func (p *painter) value(value Value) string {
	if value.Unknown || value.Sensitive {
		return p.paint(faint, value.Text())
	}
	return value.Text()
}
