package module

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/internal/module/source"
)

func newPush() *cobra.Command {
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "push DIR oci://REGISTRY/REPOSITORY:TAG",
		Short: "Push a provider module to an OCI registry",
		Long: `Pack the module in the folder DIR, push it to a registry as an OCI artifact, and print the reference to it: the location and the
artifact's digest, for --module-source of the manager. The module must keep the contract; its own tests are left to
'kubectl machine module check'.

Credentials come from Docker's configuration, in the folder that DOCKER_CONFIG names or in ~/.docker; 'docker login' and 'oras login'
write it.`,
		Example: `  kubectl machine module push modules/acme oci://registry.example.com/team/acme:v1.2.3`,
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			packed, err := packFolder(arguments[0])
			if err != nil {
				return err
			}
			pushed, err := packed.Push(command.Context(), arguments[1], source.Options{Timeout: timeout})
			if err != nil {
				return err
			}
			fmt.Fprintln(command.ErrOrStderr(), "pushed", packed.Module.Reference())
			_, err = fmt.Fprintln(command.OutOrStdout(), pushed)
			return err
		},
	}
	command.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "How long the registry may take.")
	return command
}
