package preview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// Formats are the forms that a preview can be printed in, with what each is for; the empty one is for people.
var Formats = map[string]string{
	"":         "for people",
	"json":     "for machines",
	"markdown": "for pull requests",
	"yaml":     "for machines",
}

// Print prints the preview in one of Formats. Colours are for terminals, and are used by the empty format only.
func (p *Preview) Print(out io.Writer, format string, colours bool) error {
	var text []byte
	var err error
	switch format {
	case "":
		text = p.people(colours)
	case "markdown":
		text = p.markdown()
	case "json":
		text, err = p.encode()
	case "yaml":
		if text, err = p.encode(); err == nil {
			text, err = yaml.JSONToYAML(text)
		}
	default:
		err = fmt.Errorf("the format %q is not known", format)
	}
	if err != nil {
		return fmt.Errorf("printing the preview: %w", err)
	}
	_, err = out.Write(text)
	return err
}

func (p *Preview) encode() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(p)
	return text.Bytes(), err
}

// columns are those of the table, and the values of one set in each.
var columns = []struct {
	title string
	value func(*Set) string
}{
	{"NAME", (*Set).tableName},
	{"REPLICAS", func(s *Set) string { return fmt.Sprint(s.Replicas) }},
	{"TYPE", func(s *Set) string { return s.InstanceType.cell() }},
	{"REGION", func(s *Set) string { return s.Region.cell() }},
	{"ZONE", func(s *Set) string { return s.Zone.cell() }},
	{"CPU", func(s *Set) string { return s.size(func(size *Size) string { return fmt.Sprint(size.CPU) }) }},
	{"MEMORY", func(s *Set) string { return s.size(func(size *Size) string { return memory(size.MemoryMiB) }) }},
	{"GPU", func(s *Set) string { return s.size(func(size *Size) string { return fmt.Sprint(size.GPU) }) }},
	{"IMAGE", (*Set).imageName},
	{"DISKS", (*Set).diskList},
	{"ADDRESSES", (*Set).addressList},
}

// nothing stands in a cell with no value.
const nothing = "-"

// rows answers the table, its titles first. Columns in which no set has anything are left out.
func (p *Preview) rows() [][]string {
	rows := make([][]string, len(p.Sets)+1)
	for n, column := range columns {
		cells := []string{column.title}
		used := n == 0
		for _, set := range p.Sets {
			cell := column.value(set)
			used = used || cell != ""
			if cell == "" {
				cell = nothing
			}
			cells = append(cells, cell)
		}
		if !used {
			continue
		}
		for row, cell := range cells {
			rows[row] = append(rows[row], cell)
		}
	}
	return rows
}

func (s *Set) tableName() string {
	name := s.Namespace + "/" + s.Name
	if s.Kind != setKind {
		name = s.Kind + " " + name
	}
	return printable(name)
}

func (s *Set) size(text func(*Size) string) string {
	if s.Size == nil {
		return ""
	}
	return text(s.Size)
}

func memory(mib int64) string {
	if mib%1024 == 0 {
		return fmt.Sprintf("%dGi", mib/1024)
	}
	return fmt.Sprintf("%dMi", mib)
}

// addressList names the addresses. Where none is known, their types are.
func (s *Set) addressList() string {
	var parts, types []string
	for _, one := range s.Addresses {
		if one.Type != "" {
			types = append(types, one.Type)
		}
		parts = append(parts, strings.TrimSpace(one.Type+" "+one.Address.cell()))
	}
	for _, one := range s.Addresses {
		if !one.Address.Unknown {
			return printable(strings.Join(parts, ", "))
		}
	}
	switch {
	case len(s.Addresses) == 0:
		return ""
	case len(types) == 0:
		return unknownText
	}
	return printable(strings.Join(types, ", ")) + " " + unknownText
}

// line is the summary in one line.
func (s Summary) line() string {
	text := fmt.Sprintf("%s: %s to add, %d to change, %d to destroy.", count(s.Machines, "Machine"), count(s.Add, "resource"), s.Change, s.Destroy)
	if s.Sets > 0 {
		text = count(s.Sets, "MachineSet") + ", " + text
	}
	return text
}

func count(number int, noun string) string {
	if number == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", number, noun)
}

// notes are what is said of a set below its resources.
func (s *Set) notes() []string {
	var notes []string
	for _, secret := range s.Secrets {
		notes = append(notes, fmt.Sprintf("The Secret %s with the %s must be in the namespace %s.", secret.Name, secret.Role, s.Namespace))
	}
	if len(s.Reads) > 0 {
		notes = append(notes, "Read while applying: "+strings.Join(s.Reads, ", ")+".")
	}
	if len(s.Open) > 0 {
		notes = append(notes, "Conditions that are open until then: "+strings.Join(s.Open, ", ")+".")
	}
	for _, warning := range s.Warnings {
		notes = append(notes, "Warning: "+warning)
	}
	return notes
}

// heading says whose plan follows.
func (s *Set) heading() string {
	name := s.Namespace + "/" + s.MachineName
	if s.Generated {
		name += "(generated)"
	}
	text := fmt.Sprintf("Machine %s", name)
	switch {
	case s.Kind == machineKind:
	case s.Live != nil:
		text += fmt.Sprintf(", as each of %d that would be made", s.Live.Create)
	case s.Replicas == 1:
		text += ", the only one"
	case s.Replicas == 0:
		text += ", if there were one"
	default:
		text += fmt.Sprintf(", as each of %d", s.Replicas)
	}
	module, _, _ := strings.Cut(s.Module, "@")
	return printable(fmt.Sprintf("%s (%s:%d, module %s)", text, s.Source.File, s.Source.Line, module))
}
