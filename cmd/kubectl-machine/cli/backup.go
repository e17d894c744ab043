package cli

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/backup"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/pulumikeys"
)

// managerNamespace is the manager's namespace in this repository's manifests.
const managerNamespace = "openshift-machine-api"

// BackupFlags are the common flags of commands that export or import states.
type BackupFlags struct {
	Inspection
	manager string
}

// RegisterManager adds the flags for the namespace of the keys of Pulumi's checkpoints, and for the
// keys of states.
func (f *BackupFlags) RegisterManager(command *cobra.Command) {
	f.RegisterStateKey(command)
	command.Flags().StringVar(&f.manager, "manager-namespace", managerNamespace,
		"Namespace of the manager, with the keys of Pulumi's checkpoints.")
	_ = command.RegisterFlagCompletionFunc("manager-namespace", f.Complete(NamesOf("Namespace")))
}

// Source returns the source of a backup, and a client.
func (f *BackupFlags) Source() (*backup.Source, client.Client, error) {
	live, _, err := f.Connect()
	if err != nil {
		return nil, nil, err
	}
	options, err := f.StateOptions()
	if err != nil {
		return nil, nil, err
	}
	keys, err := pulumikeys.New(live, pulumikeys.Options{Namespace: f.manager})
	if err != nil {
		return nil, nil, err
	}
	return &backup.Source{States: state.New(live, options), Modules: store.New(live, store.Options{}),
		Keys: keys}, live, nil
}
