package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	machines     = "machines.machine.openshift.io"
	machineSets  = "machinesets.machine.openshift.io"
	healthChecks = "machinehealthchecks.machine.openshift.io"
	// label marks everything that the demo creates.
	label = "machine-iac.io/demo"
	// record is the ConfigMap that lists the demo's objects.
	record = "machine-iac-demo"
	// kwok is the ServiceAccount of the demo's own KWOK.
	kwok = "machine-iac-demo-kwok"
	// exampleServer is the API server in the example credentials.
	exampleServer = "https://kubernetes.default.svc"
	// openShift is a CRD that only OpenShift has.
	openShift    = "clusteroperators.config.openshift.io"
	exampleImage = "machine-iac-operator:latest"
)

// kwokManifests are the manifests for the demo's own KWOK.
//
//go:embed kwok.yaml
var kwokManifests string

// installation is what the demo creates in a cluster.
type installation struct {
	lab *lab.Lab
	// image is the operator's image, or empty if the manager runs on this machine.
	image string
	// kwok reports whether the demo runs its own KWOK.
	kwok    bool
	objects []*unstructured.Unstructured
}

// plan returns what to create, or an error if that would touch anything the demo did not create.
func (t *target) plan(ctx context.Context, image string) (*installation, error) {
	i := &installation{lab: t.lab, image: image}
	before, err := i.installed(ctx)
	if err != nil {
		return nil, err
	}
	if before != "" && before != "|"+image {
		return nil, fmt.Errorf("the demo is installed with --image=%q, not %q; run 'make demo-down' first",
			before[1:], image)
	}
	found, err := i.findKWOK(ctx)
	if err != nil {
		return nil, err
	}
	i.kwok = found == ""
	if before == "" {
		if err := i.refuseRemains(ctx); err != nil {
			return nil, err
		}
	}
	if i.kwok {
		found = "none in the cluster; bin/kwok runs on this machine"
	}
	fmt.Println("KWOK    ", found)
	if err := i.render(ctx, t.cluster.Server); err != nil {
		return nil, err
	}
	return i, i.refuse(ctx)
}

// installed returns "|" and the image of the installed demo, or nothing.
func (i *installation) installed(ctx context.Context) (string, error) {
	return i.lab.Kubectl(ctx, "get", "configmap", record, "--ignore-not-found", "--output=jsonpath=|{.data.image}")
}

// refuse returns an error if the cluster has a Machine API, or objects of the same names, that the demo did not create.
func (i *installation) refuse(ctx context.Context) error {
	out, err := i.lab.Run(ctx, "", "get", "crd", "--selector=!"+label, "--output=name")
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(out) {
		_, name, _ = strings.Cut(name, "/")
		_, group, _ := strings.Cut(name, ".")
		if group == "machine.openshift.io" || group == "machine-iac.io" || name == openShift {
			return fmt.Errorf("the cluster has %s already, of OpenShift or of another installation of this operator; "+
				"use another cluster, or delete that first", name)
		}
	}
	input, err := encode(i.objects)
	if err != nil {
		return err
	}
	const columns = `custom-columns=KIND:.kind,NAME:.metadata.name,DEMO:.metadata.labels.machine-iac\.io/demo`
	existing, err := i.lab.Run(ctx, input, "get", "--ignore-not-found", "--no-headers", "--output="+columns, "-f", "-")
	if err != nil {
		return err
	}
	for line := range strings.Lines(existing) {
		if words := strings.Fields(line); len(words) == 3 && words[2] != "true" {
			return fmt.Errorf("%s %s exists, and was not created by this demo; use another cluster, or delete it first",
				words[0], words[1])
		}
	}
	return nil
}

// remains selects, as kubectl arguments, what the operator and the manager leave in the namespace.
var remains = []string{
	"secrets --selector=machine-iac.io/module-content",
	"secrets machine-iac-installation machine-iac-pulumi-keys machine-iac-webhook-cert",
	"leases machine-iac-controllers-leader machine-api-operator",
	"configmaps machine-iac-inventory machine-iac-modules",
}

// refuseRemains returns an error if another installation left objects in the namespace, such as the keys of its states:
// the demo would delete them on exit.
func (i *installation) refuseRemains(ctx context.Context) error {
	for _, what := range append(remains, "secrets --selector=tfstate=true") {
		found, err := i.lab.Kubectl(ctx,
			append([]string{"get", "--ignore-not-found", "--output=name"}, strings.Fields(what)...)...)
		if err != nil {
			return err
		}
		if found != "" {
			return fmt.Errorf("namespace %s has %s of another installation; use another cluster, or delete that first",
				lab.Namespace, strings.Join(strings.Fields(found), ", "))
		}
	}
	return nil
}

// findKWOK returns evidence that the cluster runs KWOK, or nothing.
func (i *installation) findKWOK(ctx context.Context) (string, error) {
	const format = `jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} ` +
		`{.metadata.labels.app} {.spec.template.spec.containers[*].image}{"\n"}{end}`
	out, err := i.lab.Run(ctx, "", "get", "deployments", "--all-namespaces", "--output="+format)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		name, about, _ := strings.Cut(line, " ")
		if strings.Contains(about, "kwok-controller") || strings.Contains(about, "/kwok:") {
			return "Deployment " + name, nil
		}
	}
	return i.lab.Run(ctx, "", "get", "crd", "stages.kwok.x-k8s.io", "--ignore-not-found", "--output=name")
}

// render renders the objects. The first one records how they are installed.
func (i *installation) render(ctx context.Context, server string) error {
	sources := []string{
		"kustomize install/kubernetes/crds", "kustomize install/controllers/rbac",
		"install/controllers/service-account.yaml",
	}
	if i.image != "" {
		sources, server = []string{"kustomize install/kubernetes"}, exampleServer // Pods use the Service
	}
	replace := strings.NewReplacer(exampleServer, server, exampleImage, i.image)
	const recordManifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: {image: %q}}"
	manifests := []string{fmt.Sprintf(recordManifest, record, lab.Namespace, i.image)}
	for _, source := range append(sources, "modules/kubemark/examples/credentials.yaml") {
		manifest, err := "", error(nil)
		if tree, found := strings.CutPrefix(source, "kustomize "); found {
			manifest, err = i.lab.Run(ctx, "", "kustomize", i.lab.Path(tree))
		} else {
			var content []byte
			content, err = os.ReadFile(i.lab.Path(source))
			manifest = string(content)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", source, err)
		}
		manifests = append(manifests, replace.Replace(manifest))
	}
	if i.kwok {
		manifests = append(manifests, kwokManifests)
	}
	var err error
	i.objects, err = decode(strings.Join(manifests, "\n---\n"))
	return err
}

func decode(manifests string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		one := &unstructured.Unstructured{}
		err := documents.Decode(&one.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(one.Object) > 0:
			objects = append(objects, one)
		}
	}
}

// encode returns a List for kubectl in which each object has the label.
func encode(objects []*unstructured.Unstructured) (string, error) {
	for _, one := range objects {
		labels := one.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[label] = "true"
		one.SetLabels(labels)
	}
	out, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	return string(out), err
}

// create creates objects, or updates those that the demo created earlier.
func (i *installation) create(ctx context.Context, objects []*unstructured.Unstructured) error {
	return i.send(ctx, objects, "apply", "--server-side", "--force-conflicts", "--field-manager=machine-iac-demo")
}

// send labels objects and passes them to a kubectl command.
func (i *installation) send(ctx context.Context, objects []*unstructured.Unstructured, command ...string) error {
	input, err := encode(objects)
	if err != nil {
		return err
	}
	_, err = i.lab.Run(ctx, input, append(command, "-f", "-")...)
	return err
}

// read reads the objects of a file of the repository.
func (i *installation) read(file string) ([]*unstructured.Unstructured, error) {
	manifest, err := os.ReadFile(i.lab.Path(file))
	if err != nil {
		return nil, fmt.Errorf("reading a manifest: %w", err)
	}
	return decode(string(manifest))
}

// apply creates everything but the example.
func (i *installation) apply(ctx context.Context) error {
	found, err := i.lab.Run(ctx, "", "get", "namespace", lab.Namespace, "--ignore-not-found", "--output=name")
	if err != nil {
		return err
	}
	if found == "" {
		namespace, err := i.read("install/kubernetes/namespace.yaml")
		if err == nil {
			err = i.send(ctx, namespace, "create") // fails if it was created concurrently
		}
		if err != nil {
			return err
		}
	}
	if err := i.create(ctx, i.objects); err != nil {
		return err
	}
	if _, err := i.lab.Run(ctx, "", "wait", "--for=condition=Established", "--timeout=60s", "crd",
		"--selector="+label); err != nil {
		return err
	}
	return i.lab.CredentialsFilled(ctx)
}

// start starts KWOK if the cluster has none, and then starts the manager, or waits for the one in the cluster and
// returns nil.
func (i *installation) start(ctx context.Context, running *lab.Running) (*lab.Manager, error) {
	if i.kwok {
		fmt.Println("starting KWOK")
		stop, err := i.lab.StartKWOK(ctx, kwok)
		if err != nil {
			return nil, err
		}
		running.Add(stop)
	}
	if i.image != "" {
		fmt.Println("waiting for the operator and the manager in the cluster, from", i.image)
		return nil, i.lab.Until(ctx, patience, "the Deployments are available", func(ctx context.Context) (bool, error) {
			_, err := i.lab.Kubectl(ctx, "wait", "--for=condition=Available", "--timeout=5s",
				"deployment/machine-api-operator", "deployment/machine-api-controllers")
			return err == nil, err
		})
	}
	fmt.Println("starting the manager, without admission webhooks: the API server cannot reach this machine")
	// A manager that was killed with its demo holds the lease until it expires.
	manager, err := i.lab.StartManager(ctx,
		"--drift-interval=1m", "--webhook-enabled=false", "--leader-elect-lease-duration=30s")
	if err != nil {
		return nil, err
	}
	running.Add(func() error { return manager.Stop(patience) })
	return manager, nil
}

// applyExample applies the example, with a taint that keeps the cluster's own Pods off the simulated Nodes.
func (i *installation) applyExample(ctx context.Context) error {
	taint := map[string]any{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
	objects, err := i.read(example)
	for _, set := range objects {
		where := []string{"spec", "template", "spec", "providerSpec", "value", "taints"}
		err = errors.Join(err, unstructured.SetNestedSlice(set.Object, []any{taint}, where...))
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", example, err)
	}
	return i.create(ctx, objects)
}
