package pulumikeys

import (
	"context"

	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
)

// Derive has keys made and read otherwise than by package pulumi.
func (k *Keys) Derive(newKey func(context.Context) (*pulumi.Key, error), readKey func(ctx context.Context, passphrase, salt string) (*pulumi.Key, error)) {
	k.newKey, k.readKey = newKey, readKey
}
