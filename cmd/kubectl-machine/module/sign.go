package module

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
)

// signFlags are those of module sign.
type signFlags struct {
	cli.ClusterFlags
	keyFile string
}

func newSign() *cobra.Command {
	var f signFlags
	command := &cobra.Command{
		Use:   "sign NAME@sha256:DIGEST --module-key-file FILE",
		Short: "Sign a module that the cluster keeps for Machines",
		Long: `Sign a module that is stored in the namespace of the Machines that were made with it, so that a manager with --module-key-file uses it. It
is for content from before the manager had a key, and from a backup; a manager signs by itself what it has loaded, and what it keeps. Compare the
digest with one that you know: any user who may write Secrets there may have stored the content. The Machine's status names its module.`,
		Example: `  kubectl machine module sign acme@sha256:0a1b... -n openshift-machine-api --module-key-file module.key`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			return f.sign(command, arguments[0])
		},
	}
	f.Register(command, "Namespace of the Machines. Default: the context's.")
	command.Flags().StringVar(&f.keyFile, "module-key-file", "",
		"The manager's --module-key-file: a file, or a folder whose first key signs.")
	_ = command.MarkFlagRequired("module-key-file")
	command.ValidArgsFunction = cobra.NoFileCompletions
	return command
}

func (f *signFlags) sign(command *cobra.Command, reference string) error {
	name, _, _ := strings.Cut(reference, "@")
	digest := store.DigestOf(reference)
	if digest == "" {
		return fmt.Errorf("%q is no module; write it as NAME@sha256:DIGEST, as the condition ModuleCurrent or 'kubectl machine state export' has it", reference)
	}
	keys, err := store.ReadKeys(f.keyFile)
	if err != nil {
		return err
	}
	live, namespace, err := f.Connect()
	if err != nil {
		return err
	}
	stored := store.New(live, store.Options{Known: func(known string) bool { return known == digest }})
	found, err := stored.Load(command.Context(), namespace, digest)
	if err != nil {
		return err
	}
	if found.Name() != name {
		return fmt.Errorf("the content with this digest is the module %s, and not %s; find out who wrote the reference",
			found.Name(), name)
	}
	if err := store.New(live, store.Options{Keys: keys}).Keep(command.Context(), namespace, found); err != nil {
		return err
	}
	_, err = fmt.Fprintln(command.OutOrStdout(), "signed", found.Reference())
	return err
}
