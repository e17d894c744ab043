// Package module is `kubectl machine module`: it creates, checks, packs and pushes provider
// modules. Each command has a file; contract.go and engine.go are the two halves of a check.
package module

import (
	"fmt"

	"github.com/spf13/cobra"
)

// NewCommand returns the group of commands.
func NewCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "module",
		Short: "Make, check and ship provider modules",
		Long: `Make, check and ship provider modules: folders of HCL that turn a providerSpec into an instance.
docs/contracts/module.md says what they must be, docs/contributing-a-provider.md how to make one.`,
		Example: `  kubectl machine module new acme
  kubectl machine module check acme
  kubectl machine module push acme oci://registry.example.com/team/acme:v1`,
		Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) > 0 {
				return fmt.Errorf("unknown command %q for %q; '%s --help' lists them", arguments[0], command.CommandPath(),
					command.CommandPath())
			}
			return command.Help()
		},
	}
	command.AddCommand(newCheck(), newNew(), newPack(), newPush(), newSign())
	return command
}
