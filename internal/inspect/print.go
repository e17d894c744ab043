package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"sigs.k8s.io/yaml"
)

// Formats are the forms of output, with what each is for; the empty one is a table for people.
var Formats = map[string]string{
	"":      "a table",
	"table": "a table",
	"wide":  "a table with everything",
	"json":  "for machines",
	"yaml":  "for machines",
}

// KnownFormat refuses what is none of Formats.
func KnownFormat(format string) error {
	if _, known := Formats[format]; !known {
		return fmt.Errorf("the output format %q is not known; write -o table, -o wide, -o json or -o yaml, or leave it out", format)
	}
	return nil
}

// IsTable reports whether one of Formats is for people.
func IsTable(format string) bool { return format != "json" && format != "yaml" }

// narrow is how much of a text a table shows that is not wide.
const narrow = 100

// table is what can be printed for people too.
type table interface {
	// table answers rows, the titles first.
	table(wide bool) [][]string
}

// prose is what is printed for people in no table.
type prose interface{ text() []byte }

func readable(value any, wide bool) ([]byte, error) {
	switch value := value.(type) {
	case table:
		return aligned(value.table(wide)), nil
	case prose:
		return value.text(), nil
	}
	return nil, fmt.Errorf("%T is for machines only", value)
}

// Print prints what this package answers in one of Formats.
func Print(out io.Writer, format string, value any) error {
	var text []byte
	var err error
	switch format {
	case "json", "yaml":
		text, err = encode(value)
		if err == nil && format == "yaml" {
			text, err = yaml.JSONToYAML(text)
		}
	case "", "table", "wide":
		text, err = readable(value, format == "wide")
	default:
		return KnownFormat(format)
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	_, err = out.Write(text)
	return err
}

func encode(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return text.Bytes(), err
}

func aligned(rows [][]string) []byte {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = oneLine(row[i])
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush() //nolint:errcheck // a buffer takes everything
	var trimmed bytes.Buffer
	for line := range strings.Lines(text.String()) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return trimmed.Bytes()
}

// oneLine keeps a text of others from breaking the table, or the terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, text)
}

// cut shortens a text for a table that is not wide.
func cut(text string, wide bool) string {
	if letters := []rune(text); !wide && len(letters) > narrow {
		return string(letters[:narrow-3]) + "..."
	}
	return text
}

func (t *Forest) table(wide bool) [][]string {
	rows := [][]string{{"NAME", "STATUS", "AGE", "DETAILS"}}
	spread := map[string]bool{}
	for _, item := range t.Items {
		spread[item.Namespace] = true
	}
	var add func(item *Item, lead, branch string)
	add = func(item *Item, lead, branch string) {
		name := item.Kind
		switch {
		case item.Name != "" && item.Namespace != "" && len(spread) > 1:
			name += "/" + item.Namespace + "/" + item.Name
		case item.Name != "":
			name += "/" + item.Name
		}
		var details []string
		if item.Failure != "" {
			details = append(details, item.Failure)
		}
		for _, c := range item.Conditions {
			details = append(details, c.String())
		}
		details = append(details, item.Notes...)
		made := ""
		if item.Created != nil {
			made = age(item.Created.Time, t.now)
		}
		rows = append(rows, []string{lead + branch + name, item.Status, made, cut(strings.Join(details, "; "), wide)})
		under := map[string]string{"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
		for i, child := range item.Children {
			next := "├─ "
			if i == len(item.Children)-1 {
				next = "└─ "
			}
			add(child, lead+under, next)
		}
	}
	for _, item := range t.Items {
		add(item, "", "")
	}
	return rows
}
