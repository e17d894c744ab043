package preview

import (
	"fmt"
	"slices"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// Warnings returns the warnings about all objects, each on one line. A warning about Machines of the cluster is left
// out if it is also one about their MachineSet.
func (p *Preview) Warnings() []string {
	var all []string
	for _, set := range p.Sets {
		warn := func(about, warning string) {
			all = append(all, print.Printable(about+": "+print.Collapse(warning)))
		}
		where := set.Source.of(set.Kind, set.Namespace, set.Name)
		for _, warning := range set.Warnings {
			warn(where, warning)
		}
		for _, one := range set.machineWarnings() {
			warn(where+", "+one.heading(), one.first.Warnings[0])
		}
	}
	return all
}

// machineWarnings returns a group of existing Machines for each warning that the set itself does not have.
func (s *Set) machineWarnings() []*group {
	if s.Live == nil {
		return nil
	}
	var groups []*group
	for _, machine := range s.Live.Machines {
		for _, warning := range machine.Warnings {
			if slices.Contains(s.Warnings, warning) || slices.Contains(s.Warnings, templatePath+"."+warning) {
				continue
			}
			at := slices.IndexFunc(groups, func(g *group) bool { return g.first.Warnings[0] == warning })
			if at < 0 {
				at = len(groups)
				groups = append(groups, &group{first: &LiveMachine{Warnings: []string{warning}}})
			}
			groups[at].names = append(groups[at].names, machine.Name)
		}
	}
	return groups
}

// warned returns notes for documents, which have the warnings too.
func warned(notes, warnings []string) []string {
	notes = slices.Clip(notes)
	for _, warning := range warnings {
		notes = append(notes, "Warning: "+print.Collapse(warning))
	}
	return notes
}

// of names an object and where it is.
func (s Source) of(kind, namespace, name string) string {
	return fmt.Sprintf("%s:%d: document %d, %s %s/%s", s.File, s.Line, s.Document, kind, namespace, name)
}
