package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"
)

// Printer prints what this package returns in the formats of kubectl get. What is no table is for people in a form of its own.
type Printer struct{ flags *get.PrintFlags }

// NewPrinter returns a printer of tables.
func NewPrinter() *Printer {
	flags := get.NewGetPrintFlags()
	flags.HumanReadableFlags = &get.HumanPrintFlags{} // the other flags for tables are about objects
	return &Printer{flags: flags}
}

// AddFlags adds --output and what belongs to it.
func (p *Printer) AddFlags(command *cobra.Command) {
	p.flags.TemplateFlags.AddFlags(command)
	flags := command.Flags()
	flags.StringVarP(p.flags.OutputFormat, "output", "o", "", "Output format. One of: ("+strings.Join(p.Formats(), ", ")+"). Default: a table.")
	flags.BoolVar(p.flags.NoHeaders, "no-headers", false, "Print no headers in a table or in custom columns.")
}

// tableFormat is another name of the format that is printed by default.
const tableFormat = "table"

// Formats returns what --output takes.
func (p *Printer) Formats() []string {
	return slices.Sorted(slices.Values(append(p.flags.AllowedFormats(), tableFormat)))
}

// Validate checks the flags before anything is read.
func (p *Printer) Validate() error {
	_, err := p.printer()
	return err
}

func (p *Printer) printer() (printers.ResourcePrinter, error) {
	if *p.flags.OutputFormat == tableFormat {
		*p.flags.OutputFormat = ""
	}
	return p.flags.ToPrinter()
}

// report is what can be printed.
type report interface {
	// about returns the object that each row or item is about.
	about() []metav1.PartialObjectMetadata
}

// table is a report for people in rows.
type table interface {
	report
	// table returns rows, the titles first.
	table(wide bool) [][]string
	// allNamespaces reports whether the rows are of several namespaces.
	allNamespaces() bool
}

// prose is a report for people in another form.
type prose interface {
	report
	text(wide, headers bool) []byte
}

// Print prints a report.
func (p *Printer) Print(out io.Writer, value report) error {
	rows, isTable := value.(table)
	p.flags.HumanReadableFlags.WithNamespace = isTable && rows.allNamespaces()
	printer, err := p.printer()
	if err != nil {
		return err
	}
	wide := *p.flags.OutputFormat == "wide"
	switch printer := printer.(type) {
	case *printers.HumanReadablePrinter:
		if isTable {
			return printer.PrintObj(tableOf(rows, wide), out)
		}
		if prose, ok := value.(prose); ok {
			_, err := out.Write(prose.text(wide, !*p.flags.NoHeaders))
			return err
		}
		return fmt.Errorf("printing: %T has no form for people", value)
	case *printers.NamePrinter:
		for _, object := range value.about() {
			if err := printer.PrintObj(&object, out); err != nil {
				return err
			}
		}
		return nil
	case *get.CustomColumnsPrinter:
		return printObject(printer, out, value, listOf)
	default:
		return printObject(printer, out, value, documentOf)
	}
}

// printObject prints a report in the form that a printer takes.
func printObject(printer printers.ResourcePrinter, out io.Writer, value report, form func([]byte) (runtime.Object, error)) error {
	text, err := encode(value)
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	object, err := form(text)
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return printer.PrintObj(object, out)
}

// documentOf is for printers of whole objects. A report has no API version and no kind, which they ask for unless the object is unknown.
func documentOf(text []byte) (runtime.Object, error) {
	return &runtime.Unknown{Raw: text, ContentType: runtime.ContentTypeJSON}, nil
}

// listOf is for printers that take items one by one.
func listOf(text []byte) (runtime.Object, error) {
	var value struct{ Items []map[string]any }
	var whole map[string]any
	if err := decodeNumbers(text, &whole); err != nil {
		return nil, err
	}
	if _, ok := whole["items"]; !ok {
		return &unstructured.Unstructured{Object: whole}, nil
	}
	if err := decodeNumbers(text, &value); err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	for _, item := range value.Items {
		list.Items = append(list.Items, unstructured.Unstructured{Object: item})
	}
	return list, nil
}

// decodeNumbers decodes JSON, and keeps numbers as they are written.
func decodeNumbers(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// tableOf returns the table that kubectl's printer takes.
func tableOf(value table, wide bool) *metav1.Table {
	rows, objects := value.table(wide), value.about()
	result := &metav1.Table{}
	for _, title := range rows[0] {
		result.ColumnDefinitions = append(result.ColumnDefinitions, metav1.TableColumnDefinition{Name: title, Type: "string"})
	}
	for i, row := range rows[1:] {
		one := metav1.TableRow{Object: runtime.RawExtension{Object: &objects[i]}}
		for _, cell := range row {
			one.Cells = append(one.Cells, oneLine(cell))
		}
		result.Rows = append(result.Rows, one)
	}
	return result
}

// reference returns the metadata of an object by which -o name prints it.
func reference(kind schema.GroupVersionKind, namespace, name string) metav1.PartialObjectMetadata {
	object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	object.SetGroupVersionKind(kind)
	return object
}

func machineReference(namespace, name string) metav1.PartialObjectMetadata {
	return reference(machinev1beta1.GroupVersion.WithKind(kindMachine), namespace, name)
}

// narrow is how much of a text a table shows that is not wide.
const narrow = 100

func encode(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
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

func (t *Forest) about() []metav1.PartialObjectMetadata {
	var objects []metav1.PartialObjectMetadata
	for _, item := range t.Items {
		objects = append(objects, reference(machinev1beta1.GroupVersion.WithKind(item.Kind), item.Namespace, item.Name))
	}
	return objects
}

// text draws a tree: kubectl's printer of tables counts bytes, so that branches would move the columns.
func (t *Forest) text(wide, headers bool) []byte {
	if len(t.Items) == 0 {
		return nil
	}
	rows := t.rows(wide)
	if !headers {
		rows = rows[1:]
	}
	return aligned(rows)
}

func (t *Forest) rows(wide bool) [][]string {
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
