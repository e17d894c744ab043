package preview

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// Remarks after a change.
const (
	forcesText = "needs a new Machine"
	unsureText = "not confirmed by the provider; use --refresh"
)

// results maps edit results to their words and colours.
var results = map[EditResult]struct{ text, colour string }{
	Unchanged:  {text: "stay as it is"},
	InPlace:    {text: "change in place", colour: yellow},
	NewMachine: {text: "need a new Machine", colour: red},
	Replaced:   {text: "be replaced", colour: red},
	NotMade:    {text: "be created", colour: green},
	Refused:    {text: "reject the edit", colour: red},
	Gone:       {text: "not change"},
	Undecided:  {text: "not known", colour: red},
}

// liveHeading summarises what the object would do to the cluster.
func liveHeading(s *Set) string {
	line := fmt.Sprintf("%s %s/%s", s.Kind, s.Namespace, s.Name)
	switch {
	case !s.Live.Exists:
		return print.Printable(line + " is not in the cluster")
	case s.Kind == KindMachine:
		return print.Printable(line)
	case s.Live.Replicas != s.Replicas:
		line += fmt.Sprintf(": %d -> %d replicas", s.Live.Replicas, s.Replicas)
	default:
		line += ": " + count(int(s.Replicas), "replica")
	}
	if s.Live.Create > 0 {
		line += fmt.Sprintf(", %s would be created as below", count(s.Live.Create, "Machine"))
	}
	if s.Live.Delete > 0 {
		line += fmt.Sprintf(", %s would be deleted (delete policy %s)", count(s.Live.Delete, "Machine"),
			s.Live.DeletePolicy)
	}
	return print.Printable(line)
}

// liveMeaning explains the table of existing Machines.
func liveMeaning(s *Set) string {
	switch {
	case s.Live.Rollout != nil:
		return print.Printable(fmt.Sprintf("What the strategy %s would do to the Machines:", s.Live.Rollout.Strategy))
	case s.Kind == KindMachine:
		return "The operator changes the Machine's instance in place or not at all. What it would do:"
	}
	return "A MachineSet does not change the Machines that it has; its template is for new ones. To bring a Machine " +
		"to the template, edit the Machine, " +
		"or delete it, so that the MachineSet creates another. What an edit of each Machine to this template would do:"
}

// group holds Machines with the same details.
type group struct {
	names []string
	first *LiveMachine
}

// groups groups Machines by their details, leaving out those that the table describes in full.
func groups(l *Live, notes func(*LiveMachine) []string) []*group {
	var groups []*group
	for _, machine := range l.Machines {
		if as := machine.PlannedAs; as != "" {
			if at := slices.IndexFunc(groups, func(g *group) bool { return slices.Contains(g.names, as) }); at >= 0 {
				groups[at].names = append(groups[at].names, machine.Name)
			}
			continue
		}
		if len(machine.Fields)+len(machine.Resources)+len(notes(machine)) == 0 {
			continue
		}
		at := slices.IndexFunc(groups, func(g *group) bool { return isAlike(g.first, machine) })
		if at < 0 {
			groups = append(groups, &group{first: machine})
			at = len(groups) - 1
		}
		groups[at].names = append(groups[at].names, machine.Name)
	}
	return groups
}

// isAlike reports whether two Machines have the same details, except for their own values, such as names.
func isAlike(m *LiveMachine, other *LiveMachine) bool {
	return m.Result == other.Result && m.Why == other.Why && m.Drift == other.Drift && m.Module == other.Module &&
		slices.Equal(m.Notes, other.Notes) && slices.Equal(m.Warnings, other.Warnings) &&
		reflect.DeepEqual(m.Fields, other.Fields) &&
		slices.Equal(outline(m.Resources), outline(other.Resources))
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

func (g *group) heading() string {
	const shown = 3
	names := strings.Join(g.names[:min(shown, len(g.names))], ", ")
	if more := len(g.names) - shown; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return print.Printable(names)
}

// reason returns the WHY cell: what forces a replacement, or else the reason.
func reason(m *LiveMachine) string {
	var names []string
	for _, field := range m.Fields {
		if field.Forces || m.Result == InPlace {
			names = append(names, field.Path)
		}
	}
	switch {
	case len(names) > 0:
		return print.Printable(strings.Join(names, ", "))
	case m.Why != "":
		return print.Printable(print.Collapse(m.Why))
	case m.Drift != "":
		return "it has drifted"
	}
	return ""
}

// live prints the cluster's Machines of a set.
func (p *painter) live(set *Set) {
	if set.Live == nil {
		return
	}
	fmt.Fprintf(&p.out, "%s\n\n", p.paint(bold, liveHeading(set)))
	if len(set.Live.Machines) == 0 {
		return
	}
	fmt.Fprintf(&p.out, "%s\n\n", print.Wrapped("  ", liveMeaning(set)))
	p.liveTable(set.Live)
	fmt.Fprintln(&p.out)
	for _, line := range rolloutLines(set) {
		fmt.Fprintln(&p.out, print.Wrapped("  ", print.Printable(line)))
	}
	if set.Live.Rollout != nil {
		fmt.Fprintln(&p.out)
	}
	for _, group := range groups(set.Live, machineNotes) {
		p.liveGroup(group)
	}
}

// liveTable prints a line for each Machine. It adds colours last, because tabwriter would count their codes.
func (p *painter) liveTable(live *Live) {
	var plain bytes.Buffer
	table := tabwriter.NewWriter(&plain, 0, 0, 3, ' ', 0)
	for _, row := range live.rows() {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	table.Flush() //nolint:errcheck // a buffer takes everything
	n := -1
	for line := range strings.Lines(plain.String()) {
		line = strings.TrimRight(line, " \n")
		if n >= 0 {
			result := results[live.Machines[n].Result]
			if result.colour != "" {
				line = strings.Replace(line, result.text, p.paint(result.colour, result.text), 1)
			}
		}
		fmt.Fprintln(&p.out, "  "+line)
		n++
	}
}

// rows returns the table of existing Machines, titles first.
func (l *Live) rows() [][]string {
	rows := [][]string{{"MACHINE", "PHASE", "WOULD", "WHY"}}
	for _, m := range l.Machines {
		rows = append(rows, []string{m.Name, m.Phase, results[m.Result].text, reason(m)})
	}
	if l.Rollout != nil {
		rows[0] = slices.Insert(rows[0], 1, "REVISION")
		for n, m := range l.Machines {
			rows[n+1] = slices.Insert(rows[n+1], 1, m.Revision)
		}
	}
	for _, row := range rows {
		for n := range row {
			row[n] = cmp.Or(print.Printable(row[n]), nothing)
		}
	}
	return rows
}

func (p *painter) liveGroup(group *group) {
	machine := group.first
	fmt.Fprintf(&p.out, "  %s\n\n", p.paint(bold, group.heading()))
	if len(machine.Fields) > 0 {
		fmt.Fprintln(&p.out, "    providerSpec")
		p.attributes("        ", machine.Fields)
		fmt.Fprintln(&p.out)
	}
	p.resources("    ", machine.Resources)
	for _, note := range machineNotes(machine) {
		fmt.Fprintln(&p.out, print.Wrapped("    ", print.Printable(note)))
	}
	if len(machineNotes(machine)) > 0 {
		fmt.Fprintln(&p.out)
	}
}

func machineNotes(m *LiveMachine) []string {
	var notes []string
	if why := print.Collapse(m.Why); why != "" && reason(m) != print.Printable(why) {
		notes = append(notes, why)
	}
	if m.Drift != "" {
		notes = append(notes, "Drift: "+print.Collapse(m.Drift))
	}
	for _, note := range m.Notes {
		notes = append(notes, print.Collapse(note))
	}
	return notes
}

func documentNotes(m *LiveMachine) []string { return warned(machineNotes(m), m.Warnings) }

// liveMarkdown prints the cluster's Machines of a set for a pull request.
func liveMarkdown(s *Set, out *bytes.Buffer) {
	if s.Live == nil {
		return
	}
	fmt.Fprintf(out, "\n%s.\n", plainText(liveHeading(s)))
	if len(s.Live.Machines) == 0 {
		return
	}
	rows := s.Live.rows()
	fmt.Fprintf(out, "\n%s\n\n%s\n%s\n", liveMeaning(s), tableRow(rows[0]), strings.Repeat("|---", len(rows[0]))+"|")
	for _, row := range rows[1:] {
		fmt.Fprintln(out, tableRow(row))
	}
	for n, line := range rolloutLines(s) {
		if n == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "- %s\n", plainText(print.Printable(line)))
	}
	for _, group := range groups(s.Live, documentNotes) {
		group.markdown(out)
	}
}

func (g *group) markdown(out *bytes.Buffer) {
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
	for n, note := range documentNotes(g.first) {
		if n == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "- %s\n", plainText(print.Printable(note)))
	}
	fmt.Fprint(out, "\n</details>\n")
}
