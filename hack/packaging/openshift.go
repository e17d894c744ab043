package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
)

const (
	openshiftFolder = "install/openshift"
	payloadPrefix   = "0000_30_machine-api-operator_"
	apiModule       = "github.com/openshift/api"
	// payloadImage and payloadVersion are placeholders that a release payload replaces, see
	// install/openshift/image-references. The image is named like machine-api-operator's.
	payloadImage   = "quay.io/openshift/origin-machine-api-operator"
	payloadVersion = "0.0.1-snapshot"
	control        = "node-role.kubernetes.io/master"
)

// payloadAnnotations select the clusters in which the cluster-version operator applies an object.
var payloadAnnotations = map[string]any{
	"capability.openshift.io/name":                                "MachineAPI",
	"exclude.release.openshift.io/internal-openshift-hosted":      "true",
	"include.release.openshift.io/self-managed-high-availability": "true",
	"include.release.openshift.io/single-node-developer":          "true",
}

// openshift adds the generated manifests for the cluster-version operator.
func openshift(from source, all files) error {
	services := from.kinds("Service")
	for _, one := range services {
		at(one.Object, "metadata", "annotations")["service.beta.openshift.io/serving-cert-secret-name"] = one.GetName() + "-tls"
	}
	rbac := from.kinds("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
	deployment, err := payloadDeployment(from)
	if err != nil {
		return err
	}
	requests, err := credentialsRequests(from.root)
	if err != nil {
		return err
	}
	for name, objects := range map[string][]object{
		"00_credentials-request": requests,
		"09_rbac":                rbac,
		"10_service":             services,
		"11_deployment":          {deployment},
	} {
		made := single
		if name == "00_credentials-request" {
			made = "modules"
		}
		for _, one := range objects {
			annotations := at(one.Object, "metadata", "annotations")
			for key, value := range payloadAnnotations {
				if _, there := annotations[key]; !there {
					annotations[key] = value
				}
			}
		}
		content, err := documents(made, objects...)
		if err != nil {
			return err
		}
		all[path.Join(openshiftFolder, payloadPrefix+name+".yaml")] = content
	}
	return payloadCRDs(from, all)
}

// payloadDeployment returns the operator's Deployment for OpenShift.
func payloadDeployment(from source) (object, error) {
	made, container, err := from.deployment()
	if err != nil {
		return nil, err
	}
	container["image"] = payloadImage
	if err := servedByServiceCA(at(made.Object, "spec", "template", "spec")); err != nil {
		return nil, err
	}
	environment, ok := container["env"].([]any)
	if !ok {
		return nil, fmt.Errorf("the container of the operator has no variables; RELEASE_VERSION is added to them")
	}
	container["env"] = append(environment, map[string]any{"name": "RELEASE_VERSION", "value": payloadVersion})
	known := map[string]any{"k8s-app": operator}
	maps.Copy(at(made.Object, "metadata", "labels"), known)
	// This Deployment replaces machine-api-operator's, so it must have the same, immutable selector.
	at(made.Object, "spec", "selector")["matchLabels"] = known
	pod := at(made.Object, "spec", "template")
	maps.Copy(at(pod, "metadata", "annotations"), map[string]any{
		"target.workload.openshift.io/management": `{"effect": "PreferredDuringScheduling"}`,
		"openshift.io/required-scc":               "nonroot-v2",
	})
	spec := at(pod, "spec")
	spec["nodeSelector"] = map[string]any{control: ""}
	spec["tolerations"] = []any{
		map[string]any{"key": control, "operator": "Exists", "effect": "NoSchedule"},
		map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"},
		map[string]any{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 120},
		map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 120},
	}
	return made, nil
}

// servedByServiceCA replaces the Secret of the metrics' certificate by the one that the service CA
// makes for the Service.
func servedByServiceCA(pod map[string]any) error {
	volumes, _ := pod["volumes"].([]any)
	for _, one := range volumes {
		if volume, ok := one.(map[string]any); ok && volume["name"] == "metrics-cert" {
			at(volume, "secret")["secretName"] = operator + "-tls"
			return nil
		}
	}
	return fmt.Errorf("the Pod of the operator has no volume metrics-cert")
}

// featureSets are OpenShift's feature sets with a CRD each.
var featureSets = []string{"Default", "CustomNoUpgrade", "DevPreviewNoUpgrade", "OKD", "TechPreviewNoUpgrade"}

// payloadCRDs adds the CRDs of the Machine API for each feature set, except MachineAPIOperator's: OpenShift has
// ClusterOperators.
func payloadCRDs(from source, all files) error {
	module, err := from.moduleFolder(apiModule)
	if err != nil {
		return err
	}
	wanted := map[string]string{"07_machinehealthcheck": "machinehealthchecks"}
	for _, set := range featureSets {
		wanted["02_machine."+set] = "machines-" + set
		wanted["03_machineset."+set] = "machinesets-" + set
	}
	for name, file := range wanted {
		content, err := os.ReadFile(filepath.Join(module, "machine", "v1beta1", "zz_generated.crd-manifests",
			"0000_10_machine-api_01_"+file+".crd.yaml"))
		if err != nil {
			return err
		}
		text := fmt.Appendf(nil, header, apiModule)
		all[path.Join(openshiftFolder, payloadPrefix+name+".crd.yaml")] = append(text, content...)
	}
	return nil
}
