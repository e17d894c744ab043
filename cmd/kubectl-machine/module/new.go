package module

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/module/scaffold"
)

func newNew() *cobra.Command {
	var dir string
	var options scaffold.Options
	command := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a new provider module",
		Long: `Create a new provider module in a new folder of its name. It keeps the contract and passes its own tests as it is. Its instance is a
placeholder that makes nothing, terraform_data; replace it by the resource of your provider. Nothing is ever overwritten.`,
		Example: `  # A module that needs no provider, to look at
  kubectl machine module new acme

  # One for a provider, in the folder modules
  kubectl machine module new acme --dir modules --kind AcmeMachineProviderSpec --api-version acme.example.com/v1alpha1 \
    --provider acme/cloud --provider-version 1.2.3`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			options.Name = arguments[0]
			folder, err := scaffold.Write(dir, options)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(command.OutOrStdout(), nextSteps(folder, options))
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&dir, "dir", ".", "Folder in which to create the module's folder.")
	flags.StringVar(&options.Kind, "kind", "",
		"providerSpec kind that the module serves. Default: NAME in camel case and MachineProviderSpec.")
	flags.StringVar(&options.APIVersion, "api-version", "",
		"Group and version of the kind. Default: NAME.machine-iac.io/v1alpha1.")
	flags.StringVar(&options.Provider, "provider", "",
		"Source of the provider that makes the instance, such as hashicorp/aws.")
	flags.StringVar(&options.ProviderVersion, "provider-version", "", "Exact version of the provider.")
	return command
}

// nextSteps returns what was created and what to do next.
func nextSteps(folder string, options scaffold.Options) string {
	text := fmt.Sprintf("The module %s is in %s. It keeps the contract and passes its tests as it is:\n\n  kubectl machine module check %s\n",
		options.Name, folder, folder)
	if options.Provider != "" {
		text += fmt.Sprintf("\nThe check needs the provider %s %s, from a folder (--provider-mirror) or else from its registry. Add its checksums\nto the lock file:\n\n"+
			"  cd %s && tofu providers lock -platform=linux_amd64 -platform=linux_arm64\n",
			options.Provider, options.ProviderVersion, filepath.Clean(folder))
	}
	return text +
		"\nMake it yours in this order: variables.tf, main.tf, outputs.tf, module.yaml, lookup/, adopt/, inventory/, tests/, README.md, examples/.\n"
}
