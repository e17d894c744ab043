// Package print prints reports about a cluster as kubectl get prints objects: tables, JSON, YAML, names, columns and paths. It has as well what the
// reports share: ages, references, texts that fit into a table and leave the terminal alone.
package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"
)

// Printer prints reports in the formats of kubectl get. What is no table is for people in a form of its own.
type Printer struct{ flags *get.PrintFlags }

// New returns a printer of tables.
func New() *Printer {
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

// Report is what can be printed.
type Report interface {
	// Objects returns the object that each row or item is about.
	Objects() []metav1.PartialObjectMetadata
}

// Table is a report for people in rows.
type Table interface {
	Report
	// Rows returns rows, the titles first.
	Rows(wide bool) [][]string
	// WithNamespaces reports whether the rows are of several namespaces.
	WithNamespaces() bool
}

// Prose is a report for people in another form.
type Prose interface {
	Report
	Text(wide, headers bool) []byte
}

// Print prints a report.
func (p *Printer) Print(out io.Writer, value Report) error {
	rows, isTable := value.(Table)
	p.flags.HumanReadableFlags.WithNamespace = isTable && rows.WithNamespaces()
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
		if prose, ok := value.(Prose); ok {
			_, err := out.Write(prose.Text(wide, !*p.flags.NoHeaders))
			return err
		}
		return fmt.Errorf("printing: %T has no form for people", value)
	case *printers.NamePrinter:
		for _, object := range value.Objects() {
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
func printObject(printer printers.ResourcePrinter, out io.Writer, value Report, form func([]byte) (runtime.Object, error)) error {
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
func tableOf(value Table, wide bool) *metav1.Table {
	rows, objects := value.Rows(wide), value.Objects()
	result := &metav1.Table{}
	for _, title := range rows[0] {
		result.ColumnDefinitions = append(result.ColumnDefinitions, metav1.TableColumnDefinition{Name: title, Type: "string"})
	}
	for i, row := range rows[1:] {
		one := metav1.TableRow{Object: runtime.RawExtension{Object: &objects[i]}}
		for _, cell := range row {
			one.Cells = append(one.Cells, OneLine(cell))
		}
		result.Rows = append(result.Rows, one)
	}
	return result
}

func encode(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}
