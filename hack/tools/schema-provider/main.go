// Command schema-provider is a provider plugin that serves the recorded schema of another provider and nothing else, so that an engine
// can validate, test with mocks and preview a module without the provider itself. It refuses to be configured.
//
// It exists because these providers cannot be built from Go modules, or only in minutes. The ordinary way is to download the real provider from
// its registry.
//
// The name of the binary selects the record that it serves: terraform-provider-aws_v6.25.0 serves schemas/aws-6.25.0.json. "mirror DIR"
// makes a filesystem mirror of all records.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "schema-provider:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 1 && args[1] == "record" {
		return record(args[2:], os.Stdin, os.Stdout)
	}
	if len(args) == 3 && args[1] == "mirror" {
		return mirror(args[2])
	}
	name, version, err := recordOf(filepath.Base(args[0]))
	if err != nil {
		return err
	}
	schema, err := readRecord(name, version)
	if err != nil {
		return err
	}
	served := provider{version: version, schema: schema}
	return tf5server.Serve(schema.Address, func() tfprotov5.ProviderServer { return served })
}
