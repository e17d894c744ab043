package pulumikeys

import (
	"context"

	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
)

// Derive replaces the functions of package pulumi that create and read keys.
func (k *Keys) Derive(newKey func(context.Context) (*pulumi.Key, error),
	readKey func(ctx context.Context, passphrase, salt string) (*pulumi.Key, error)) {
	k.newKey, k.readKey = newKey, readKey
}
