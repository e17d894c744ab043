package preview

import (
	"fmt"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

func summaryLine(s Summary) string {
	text := fmt.Sprintf("%s: %s to add, %d to change, %d to destroy.", count(s.Machines, "Machine"),
		count(s.Add, "resource"), s.Change, s.Destroy)
	if s.Sets > 0 {
		text = count(s.Sets, "MachineSet") + ", " + text
	}
	if s.Deployments > 0 {
		text = count(s.Deployments, "MachineDeployment") + ", " + text
	}
	return text
}

func count(number int, noun string) string {
	if number == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", number, noun)
}

func liveSummaryLine(s *LiveSummary) string {
	parts := []string{fmt.Sprintf("%s as it is", verb(s.Unchanged, "stays", "stay"))}
	if s.Unchanged != 1 {
		parts[0] = strings.Replace(parts[0], "it is", "they are", 1)
	}
	parts = append(parts, fmt.Sprintf("%d would change in place", s.InPlace),
		verb(s.NewMachine, "needs a new Machine", "need a new Machine"))
	if s.Replaced > 0 {
		parts = append(parts, fmt.Sprintf("%d would be replaced", s.Replaced))
	}
	if s.Other > 0 {
		parts = append(parts, fmt.Sprintf("%d see above", s.Other))
	}
	text := fmt.Sprintf("%s %s: %s", count(s.Machines, "Machine"),
		map[bool]string{true: "exists", false: "exist"}[s.Machines == 1], strings.Join(parts, ", "))
	if s.Drifted > 0 {
		text += fmt.Sprintf("; %s drifted", verb(s.Drifted, "has", "have"))
	}
	return fmt.Sprintf("%s. %d would be created, %d deleted.", text, s.Create, s.Delete)
}

func verb(number int, one, more string) string {
	if number == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", number, more)
}

func notes(s *Set) []string {
	var notes []string
	for _, secret := range s.Secrets {
		notes = append(notes, fmt.Sprintf("The Secret %s with the %s must be in the namespace %s.", secret.Name,
			secret.Role, s.Namespace))
	}
	if len(s.Reads) > 0 {
		notes = append(notes, "Read during apply: "+strings.Join(s.Reads, ", ")+".")
	}
	if len(s.Open) > 0 {
		notes = append(notes, "Conditions known after apply: "+strings.Join(s.Open, ", ")+".")
	}
	return notes
}

func heading(s *Set) string {
	name := s.Namespace + "/" + s.MachineName
	if s.Generated {
		name += "(generated)"
	}
	line := fmt.Sprintf("Machine %s", name)
	switch {
	case s.Kind == KindMachine:
	case s.Live != nil:
		line += fmt.Sprintf(", as each of %d that would be created", s.Live.made())
	case s.Replicas == 1:
		line += ", the only one"
	case s.Replicas == 0:
		line += ", if there were one"
	default:
		line += fmt.Sprintf(", as each of %d", s.Replicas)
	}
	module, _, _ := strings.Cut(s.Module, "@")
	return print.Printable(fmt.Sprintf("%s (%s:%d, module %s)", line, s.Source.File, s.Source.Line, module))
}
