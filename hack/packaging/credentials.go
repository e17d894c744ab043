package main

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// request is a CredentialsRequest; a module's spec.rights supplies the rest.
type request struct{ module, secret, provider string }

// permissions are permissions that only some providerSpecs need, by module.
//
//go:embed permissions.yaml
var permissions []byte

// requests are in file order. The Secret names are those that OpenShift's installer writes into providerSpecs.
var requests = []request{
	{module: "aws", secret: "aws-cloud-credentials", provider: "AWS"},
	{module: "azure", secret: "azure-cloud-credentials", provider: "Azure"},
	{module: "openstack", secret: "openstack-cloud-credentials", provider: "OpenStack"},
	{module: "gcp", secret: "gcp-cloud-credentials", provider: "GCP"},
	{module: "vsphere", secret: "vsphere-cloud-credentials", provider: "VSphere"},
	{module: "nutanix", secret: "nutanix-credentials", provider: "Nutanix"},
}

func credentialsRequests(root string) ([]object, error) {
	besides := map[string][]string{}
	if err := yaml.Unmarshal(permissions, &besides); err != nil {
		return nil, fmt.Errorf("reading permissions.yaml: %w", err)
	}
	var all []object
	for _, one := range requests {
		made, err := one.make(root, besides[one.module])
		if err != nil {
			return nil, fmt.Errorf("the CredentialsRequest of the module %s: %w", one.module, err)
		}
		all = append(all, made)
	}
	return all, nil
}

func (r request) make(root string, besides []string) (object, error) {
	provider := map[string]any{"apiVersion": "cloudcredential.openshift.io/v1", "kind": r.provider + "ProviderSpec"}
	rights, err := rightsOf(root, r.module, r.provider)
	if err != nil {
		return nil, err
	}
	needed := slices.Compact(slices.Sorted(slices.Values(slices.Concat(rights, besides))))
	switch {
	case r.provider == "AWS":
		// The module's example assigns permissions to resources.
		if provider["statementEntries"], err = exampleStatements(root); err != nil {
			return nil, err
		}
	case len(needed) > 0:
		provider["permissions"] = needed
	}
	made := newObject("cloudcredential.openshift.io/v1", "CredentialsRequest", "openshift-cloud-credential-operator",
		"openshift-machine-api-"+r.module)
	at(made.Object, "metadata")["annotations"] = map[string]any{
		"capability.openshift.io/name": "MachineAPI+CloudCredential",
	}
	made.Object["spec"] = map[string]any{
		"serviceAccountNames": []any{"machine-api-controllers"},
		"secretRef":           map[string]any{"namespace": namespace, "name": r.secret},
		"providerSpec":        provider,
	}
	return made, nil
}

// rightsOf returns the rights that a module declares for a provider.
func rightsOf(root, module, provider string) ([]string, error) {
	declared := struct {
		Spec struct {
			Rights []struct {
				Provider string   `json:"provider"`
				Actions  []string `json:"actions"`
			} `json:"rights"`
		} `json:"spec"`
	}{}
	if err := readYAML(filepath.Join(root, "modules", module, "module.yaml"), &declared); err != nil {
		return nil, err
	}
	var actions []string
	for _, one := range declared.Spec.Rights {
		if one.Provider == provider {
			actions = append(actions, one.Actions...)
		}
	}
	return actions, nil
}

// exampleStatements returns the statements of the AWS module's CredentialsRequest.
func exampleStatements(root string) (any, error) {
	file := filepath.Join(root, "modules", "aws", "examples", "credentialsrequest.yaml")
	example := map[string]any{}
	if err := readYAML(file, &example); err != nil {
		return nil, err
	}
	statements := at(example, "spec", "providerSpec")["statementEntries"]
	if statements == nil {
		return nil, fmt.Errorf("%s has no spec.providerSpec.statementEntries", file)
	}
	return statements, nil
}
