package module

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/internal/module/source"
)

func newPush() *cobra.Command {
	var timeout time.Duration
	var signKey string
	command := &cobra.Command{
		Use:   "push DIR oci://REGISTRY/REPOSITORY:TAG",
		Short: "Push a provider module to an OCI registry",
		Long: `Pack the module in the folder DIR, push it to a registry as an OCI artifact, and print the reference to it: the location and the
artifact's digest, for --module-source of the manager. The module must keep the contract; its own tests are left to
'kubectl machine module check'.

With --sign the artifact is signed as 'cosign sign --key' does, for --module-source-key of the manager.

Credentials come from Docker's configuration, in the folder that DOCKER_CONFIG names or in ~/.docker; 'docker login' and 'oras login'
write it.`,
		Example: `  kubectl machine module push modules/acme oci://registry.example.com/team/acme:v1.2.3`,
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			options := source.Options{Timeout: timeout}
			sign, err := signerOf(signKey)
			if err != nil {
				return err
			}
			packed, err := packFolder(arguments[0])
			if err != nil {
				return err
			}
			pushed, err := packed.Push(command.Context(), arguments[1], options)
			if err != nil {
				return err
			}
			if err := sign(command.Context(), pushed, options); err != nil {
				return err
			}
			fmt.Fprintln(command.ErrOrStderr(), "pushed", packed.Module.Reference())
			_, err = fmt.Fprintln(command.OutOrStdout(), pushed)
			return err
		},
	}
	command.Flags().StringVar(&signKey, "sign", "",
		"File with a private key to sign the artifact: ECDSA or Ed25519, in PEM, without a passphrase.")
	command.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "How long the registry may take.")
	return command
}

// signerOf returns a function that signs an artifact with the key in a file, or does nothing
// without one.
func signerOf(file string) (func(context.Context, source.Reference, source.Options) error, error) {
	if file == "" {
		return func(context.Context, source.Reference, source.Options) error { return nil }, nil
	}
	key, err := source.ReadPrivateKey(file)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, pushed source.Reference, options source.Options) error {
		return pushed.Sign(ctx, key, options)
	}, nil
}
