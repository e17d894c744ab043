package main

import (
	"encoding/base64"
	"fmt"
	"io/fs"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"sigs.k8s.io/yaml"
)

// pin is where the stack says which provider is used, in the words that programs in YAML use. The operator reads it as well.
const pin = "sdks/kubectl/kubectl-1.19.0.yaml"

// declaration is what such a file says: a plugin of Pulumi's, and the provider of Terraform's that it bridges.
type declaration struct {
	Name             string `json:"name"`
	Version          string `json:"version"`
	Parameterization struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Value   string `json:"value"`
	} `json:"parameterization"`
}

// registerKubectl registers the provider with Pulumi, and returns the reference for its resources.
func registerKubectl(ctx *pulumi.Context, stack fs.FS) (string, error) {
	content, err := fs.ReadFile(stack, pin)
	if err != nil {
		return "", fmt.Errorf("reading which provider to use: %w", err)
	}
	var declared declaration
	if err := yaml.Unmarshal(content, &declared); err != nil {
		return "", fmt.Errorf("reading %s: %w", pin, err)
	}
	value, err := base64.StdEncoding.DecodeString(declared.Parameterization.Value)
	if err != nil {
		return "", fmt.Errorf("reading parameterization.value of %s: %w; write base64", pin, err)
	}
	registered, err := ctx.RegisterPackage(&pulumirpc.RegisterPackageRequest{
		Name: declared.Name, Version: declared.Version,
		Parameterization: &pulumirpc.Parameterization{
			Name: declared.Parameterization.Name, Version: declared.Parameterization.Version, Value: value,
		},
	})
	if err != nil {
		return "", fmt.Errorf("registering the provider %s: %w", declared.Parameterization.Name, err)
	}
	return registered.GetRef(), nil
}
