// Package printing prints reports as a command line would.
package printing

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// With prints a report with flags such as -o.
func With(value print.Report, arguments ...string) (string, error) {
	var out strings.Builder
	printer := print.New()
	command := &cobra.Command{
		Use: "print", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error {
			if err := printer.Validate(); err != nil {
				return err
			}
			return printer.Print(&out, value)
		}}
	printer.AddFlags(command)
	command.SetArgs(append([]string{}, arguments...)) // nil would mean the test's own
	err := command.Execute()
	return out.String(), err
}

// As prints a report in a format, or in the default one if empty.
func As(t *testing.T, format string, value print.Report) string {
	t.Helper()
	printed, err := With(value, "--output="+format)
	if err != nil {
		t.Fatal(err)
	}
	return printed
}
