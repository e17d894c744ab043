// Command program is what Pulumi runs for the stack hollow-volumes: a Node that KWOK plays, and a PersistentVolume for each volume that the
// Machine asks for.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(run)
}

// run reads what the operator has filled in, and makes what it asks for.
func run(ctx *pulumi.Context) error {
	var args Args
	for name, into := range map[string]any{"machine": &args.Machine, "provider_spec": &args.Spec} {
		value, given := ctx.GetConfig(ctx.Project() + ":" + name)
		if !given {
			return fmt.Errorf("the configuration has no %s, which the operator fills in", name)
		}
		if err := json.Unmarshal([]byte(value), into); err != nil {
			return fmt.Errorf("reading the configuration %s: %w", name, err)
		}
	}
	provider, err := registerKubectl(ctx, os.DirFS("."))
	if err != nil {
		return err
	}
	outputs, err := NewNode(ctx, provider, args)
	if err != nil {
		return err
	}
	outputs.export(ctx)
	return nil
}
