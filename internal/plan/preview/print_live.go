package preview

import (
	"bytes"
	"fmt"
	"html"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
)

// What stands behind something that is not as it looks.
const (
	forcesText = "needs a new Machine"
	unsureText = "not confirmed by the provider, which --refresh asks"
)

// verdicts are what a Machine would do, and the colour of that.
var verdicts = map[Verdict]struct{ text, colour string }{
	Unchanged:  {text: "stay as it is"},
	InPlace:    {text: "change in place", colour: yellow},
	NewMachine: {text: "need a new Machine", colour: red},
	NotMade:    {text: "be made so", colour: green},
	Refused:    {text: "refuse it", colour: red},
	Gone:       {text: "not change"},
	Undecided:  {text: "not known", colour: red},
}

// liveHeading says what the object would do to the cluster.
func (s *Set) liveHeading() string {
	text := fmt.Sprintf("%s %s/%s", s.Kind, s.Namespace, s.Name)
	switch {
	case !s.Live.Exists:
		return printable(text + " is not in the cluster")
	case s.Kind != setKind:
		return printable(text)
	case s.Live.Replicas != s.Replicas:
		text += fmt.Sprintf(": %d -> %d replicas", s.Live.Replicas, s.Replicas)
	default:
		text += ": " + count(int(s.Replicas), "replica")
	}
	if s.Live.Create > 0 {
		text += fmt.Sprintf(", so %s would be made as below", count(s.Live.Create, "Machine"))
	}
	if s.Live.Delete > 0 {
		text += fmt.Sprintf(", so %s would be deleted (delete policy %s)", count(s.Live.Delete, "Machine"), s.Live.DeletePolicy)
	}
	return printable(text)
}

// liveMeaning says what is told of the Machines that exist.
func (s *Set) liveMeaning() string {
	if s.Kind != setKind {
		return "The operator brings the Machine's instance to it, in place or not at all. What it would do:"
	}
	return "A MachineSet leaves the Machines that it has as they are; its template is for new ones. To have a Machine follow it, edit the Machine, " +
		"or delete it, so that the MachineSet makes another. What an edit of each Machine to this template would do:"
}

// alike are Machines of which the same is to be said.
type alike struct {
	names []string
	first *LiveMachine
}

// groups puts Machines together of which the same is to be said, where that is more than the table says.
func (l *Live) groups() []*alike {
	var groups []*alike
	for _, machine := range l.Machines {
		if len(machine.Fields)+len(machine.Resources)+len(machine.notes()) == 0 {
			continue
		}
		at := slices.IndexFunc(groups, func(g *alike) bool { return g.first.saysAs(machine) })
		if at < 0 {
			groups = append(groups, &alike{first: machine})
			at = len(groups) - 1
		}
		groups[at].names = append(groups[at].names, machine.Name)
	}
	return groups
}

// saysAs tells whether the same is to be said of another Machine, but for values that are its own, such as its name.
func (m *LiveMachine) saysAs(other *LiveMachine) bool {
	return m.Verdict == other.Verdict && m.Why == other.Why && m.Drift == other.Drift && m.Module == other.Module &&
		slices.Equal(m.Notes, other.Notes) && reflect.DeepEqual(m.Fields, other.Fields) && slices.Equal(outline(m.Resources), outline(other.Resources))
}

// outline names what changes, without values.
func outline(resources []Resource) []string {
	var lines []string
	for _, one := range resources {
		lines = append(lines, fmt.Sprint(one.Address, one.Action, one.Unsure))
		for _, attribute := range one.Attributes {
			lines = append(lines, fmt.Sprint(attribute.Path, attribute.Action, attribute.Forces))
		}
	}
	return lines
}

// heading says of whom the rest is.
func (g *alike) heading() string {
	const shown = 3
	names := strings.Join(g.names[:min(shown, len(g.names))], ", ")
	if more := len(g.names) - shown; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return printable(names)
}

// reason is what stands in the table beside a verdict: what forces a new Machine, or else why.
func (m *LiveMachine) reason() string {
	var names []string
	for _, field := range m.Fields {
		if field.Forces || m.Verdict == InPlace {
			names = append(names, field.Path)
		}
	}
	switch {
	case len(names) > 0:
		return printable(strings.Join(names, ", "))
	case m.Why != "":
		return printable(oneLine(m.Why))
	case m.Drift != "":
		return "it has drifted"
	}
	return ""
}

// live prints what the cluster has of a set.
func (p *painter) live(set *Set) {
	if set.Live == nil {
		return
	}
	fmt.Fprintf(&p.out, "%s\n\n", p.paint(bold, set.liveHeading()))
	if len(set.Live.Machines) == 0 {
		return
	}
	fmt.Fprintf(&p.out, "%s\n\n", wrapped("  ", set.liveMeaning()))
	p.liveTable(set.Live)
	fmt.Fprintln(&p.out)
	for _, group := range set.Live.groups() {
		p.liveGroup(group)
	}
}

// liveTable prints a line for each Machine. Colours come last, for their codes would count as width.
func (p *painter) liveTable(live *Live) {
	var plain bytes.Buffer
	table := tabwriter.NewWriter(&plain, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, strings.Join(liveColumns, "\t"))
	for _, machine := range live.Machines {
		fmt.Fprintln(table, strings.Join(machine.cells(), "\t"))
	}
	table.Flush() //nolint:errcheck // a buffer takes everything
	n := -1
	for line := range strings.Lines(plain.String()) {
		line = strings.TrimRight(line, " \n")
		if n >= 0 {
			verdict := verdicts[live.Machines[n].Verdict]
			if verdict.colour != "" {
				line = strings.Replace(line, verdict.text, p.paint(verdict.colour, verdict.text), 1)
			}
		}
		fmt.Fprintln(&p.out, "  "+line)
		n++
	}
}

var liveColumns = []string{"MACHINE", "PHASE", "WOULD", "WHY"}

func (m *LiveMachine) cells() []string {
	cells := []string{printable(m.Name), printable(m.Phase), verdicts[m.Verdict].text, m.reason()}
	for n := range cells {
		if cells[n] == "" {
			cells[n] = nothing
		}
	}
	return cells
}

func (p *painter) liveGroup(group *alike) {
	machine := group.first
	fmt.Fprintf(&p.out, "  %s\n\n", p.paint(bold, group.heading()))
	if len(machine.Fields) > 0 {
		fmt.Fprintln(&p.out, "    providerSpec")
		p.attributes("        ", machine.Fields)
		fmt.Fprintln(&p.out)
	}
	p.resources("    ", machine.Resources)
	for _, note := range machine.notes() {
		fmt.Fprintln(&p.out, wrapped("    ", printable(note)))
	}
	if len(machine.notes()) > 0 {
		fmt.Fprintln(&p.out)
	}
}

// notes are what is said of a Machine below its resources.
func (m *LiveMachine) notes() []string {
	var notes []string
	if why := oneLine(m.Why); why != "" && m.reason() != printable(why) {
		notes = append(notes, why)
	}
	if m.Drift != "" {
		notes = append(notes, "Drift: "+oneLine(m.Drift))
	}
	for _, note := range m.Notes {
		notes = append(notes, oneLine(note))
	}
	return notes
}

// textWidth is how long lines of text for people are.
const textWidth = 120

// wrapped breaks a text into lines.
func wrapped(indent, text string) string {
	var lines []string
	line := indent
	for _, word := range strings.Fields(text) {
		if len(line) > len(indent) && len(line)+1+len(word) > textWidth {
			lines, line = append(lines, line), indent
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}

// liveMarkdown prints what the cluster has of a set, for a pull request.
func (s *Set) liveMarkdown(out *bytes.Buffer) {
	if s.Live == nil {
		return
	}
	fmt.Fprintf(out, "\n%s.\n", plainText(s.liveHeading()))
	if len(s.Live.Machines) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n\n%s\n%s\n", s.liveMeaning(), tableRow(liveColumns), strings.Repeat("|---", len(liveColumns))+"|")
	for _, machine := range s.Live.Machines {
		fmt.Fprintln(out, tableRow(machine.cells()))
	}
	for _, group := range s.Live.groups() {
		group.markdown(out)
	}
}

func (g *alike) markdown(out *bytes.Buffer) {
	var plan bytes.Buffer
	if len(g.first.Fields) > 0 {
		fmt.Fprintln(&plan, "  providerSpec")
		diffLines(&plan, g.first.Fields)
	}
	diffOf(&plan, g.first.Resources)
	fmt.Fprintf(out, "\n<details><summary>%s</summary>\n", html.EscapeString(g.heading()))
	if plan.Len() > 0 {
		fence := fenceFor(plan.String())
		fmt.Fprintf(out, "\n%sdiff\n%s%s\n", fence, plan.String(), fence)
	}
	for n, note := range g.first.notes() {
		if n == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "- %s\n", plainText(printable(note)))
	}
	fmt.Fprint(out, "\n</details>\n")
}
