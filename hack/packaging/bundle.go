package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	bundleFolder = "install/olm"
	bundleName   = "machine-iac-operator"
	// treeVersion is the version of the generated files in the repository, which are no release. OLM treats 0.0.0 as no
	// version.
	treeVersion = "0.0.1"
)

// description is the ClusterServiceVersion's text for people.
//
//go:embed description.yaml
var description []byte

//go:embed icon.svg
var icon []byte

// examples are the ClusterServiceVersion's sample objects.
var examples = []string{"modules/kubemark/examples/machineset.yaml",
	"install/termination-handler/machinehealthcheck.yaml"}

// bundle adds the bundle for the Operator Lifecycle Manager.
func bundle(from source, all files) error {
	version, err := from.serviceVersion()
	if err != nil {
		return err
	}
	content, err := documents(single, version)
	if err != nil {
		return err
	}
	manifests := path.Join(bundleFolder, "manifests")
	all[path.Join(manifests, bundleName+".clusterserviceversion.yaml")] = content
	for _, one := range from.kinds("CustomResourceDefinition", "Service") {
		name := one.GetName() + ".service.yaml"
		if plural, _, ok := strings.Cut(one.GetName(), "."); ok {
			name = plural + ".crd.yaml"
		}
		// The bundle goes into the namespace that the operator is installed in.
		unstructured.RemoveNestedField(one.Object, "metadata", "namespace")
		if all[path.Join(manifests, name)], err = documents(single, one); err != nil {
			return err
		}
	}
	return nil
}

func (s source) serviceVersion() (object, error) {
	fields := map[string]any{}
	if err := yaml.Unmarshal(description, &fields); err != nil {
		return nil, fmt.Errorf("reading description.yaml: %w", err)
	}
	made := &unstructured.Unstructured{Object: fields}
	deployment, container, err := s.deployment()
	if err != nil {
		return nil, err
	}
	shown, err := s.examples()
	if err != nil {
		return nil, err
	}
	annotations := at(fields, "metadata", "annotations")
	annotations["alm-examples"] = shown
	annotations["containerImage"] = container["image"]
	spec := at(fields, "spec")
	spec["icon"] = []any{map[string]any{"mediatype": "image/svg+xml", "base64data": icon}}
	own, cluster := s.rules()
	spec["install"] = map[string]any{
		"strategy": "deployment",
		"spec": map[string]any{
			"deployments": []any{map[string]any{
				"name": deployment.GetName(), "label": at(deployment.Object, "metadata")["labels"],
				"spec": deployment.Object["spec"],
			}},
			"permissions":        []any{map[string]any{"serviceAccountName": operator, "rules": own}},
			"clusterPermissions": []any{map[string]any{"serviceAccountName": operator, "rules": cluster}},
		},
	}
	made.SetName(bundleName + ".v" + treeVersion)
	spec["version"] = treeVersion
	return made, nil
}

// rules returns the operator's rights in its own namespace and in the cluster. A bundle can name no other namespace, so
// rights in the namespace default become cluster-wide, limited to the same names.
func (s source) rules() (own, cluster []any) {
	for _, one := range s.kinds("ClusterRole", "Role") {
		rules, ok := one.Object["rules"].([]any)
		switch {
		case ok && one.GetNamespace() == namespace:
			own = append(own, rules...)
		case ok:
			cluster = append(cluster, rules...)
		}
	}
	return own, cluster
}

// examples returns the examples as a JSON list.
func (s source) examples() (string, error) {
	var shown []any
	for _, name := range examples {
		example := map[string]any{}
		if err := readYAML(filepath.Join(s.root, name), &example); err != nil {
			return "", err
		}
		shown = append(shown, example)
	}
	text, err := json.MarshalIndent(shown, "", "  ")
	return string(text), err
}
