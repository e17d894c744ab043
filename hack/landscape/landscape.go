// Package landscape runs Gardener's machine-controller-manager (MCM) with this project's driver: a control cluster,
// which is a lab with the operator, and a target cluster with the Nodes. MCM and driver run as processes with the
// rights of install/gardener. Gardener's demo and end-to-end tests use it.
package landscape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	// Namespace is the namespace of both kinds of Machines.
	Namespace = lab.Namespace
	// Secret is the classes' Secret: user data, and the kubemark module's credentials for the target cluster.
	Secret = "worker"
	// Controllers is the manager's flag for use with MCM, as in install/gardener.
	Controllers = "--controllers=machine,drain,machineclass"

	account  = "machine-controller-manager"
	userData = "#!/bin/sh\necho joining with <<BOOTSTRAP_TOKEN>>\n"
)

// Landscape is a control cluster and a target cluster.
type Landscape struct {
	Lab    *lab.Lab
	Target *cluster.Cluster
	// target runs kubectl in Target.
	target *lab.Lab
	dir    string
}

// Open starts both clusters below a folder and installs their components. It is idempotent for a folder.
func Open(ctx context.Context, root, dir string, progress io.Writer) (*Landscape, error) {
	control, err := lab.Open(ctx, lab.Options{Root: root, Dir: filepath.Join(dir, "control"), Progress: progress})
	if err != nil {
		return nil, err
	}
	l := &Landscape{Lab: control, dir: filepath.Dir(control.Dir())}
	target := lab.Options{Root: root, Dir: filepath.Join(l.dir, "target")}
	if l.Target, err = cluster.New(cluster.Options{Dir: target.Dir, Bin: control.Path("bin")}); err != nil {
		return nil, errors.Join(err, control.Close(context.WithoutCancel(ctx)))
	}
	if l.target, err = lab.Attach(target, l.Target.AdminKubeconfig()); err == nil {
		err = l.install(ctx, progress)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// Close stops both clusters. Their data stays.
func (l *Landscape) Close(ctx context.Context) error {
	return errors.Join(l.Target.Down(ctx), l.Lab.Close(ctx))
}

func (l *Landscape) install(ctx context.Context, progress io.Writer) error {
	fmt.Fprintln(progress, "starting the target cluster")
	if err := l.Target.Up(ctx, progress); err != nil {
		return err
	}
	fmt.Fprintln(progress, "applying install/gardener")
	if _, err := l.Lab.Kubectl(ctx, "apply",
		"--server-side", "-k", l.Lab.Path("install", "gardener", "crds")); err != nil {
		return err
	}
	for _, file := range []string{"service-account.yaml", "role.yaml"} {
		if _, err := l.Lab.Kubectl(ctx, "apply", "-f", l.Lab.Path("install", "gardener", "control", file)); err != nil {
			return err
		}
	}
	if _, err := l.Lab.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s",
		"crd", "--all"); err != nil {
		return err
	}
	if _, err := l.KubectlTarget(ctx, "", "apply", "-k", l.Lab.Path("install", "gardener", "target")); err != nil {
		return err
	}
	if err := l.Lab.Cluster.ServiceAccountKubeconfig(ctx, Namespace, account, l.kubeconfig("control")); err != nil {
		return err
	}
	if err := l.Target.ServiceAccountKubeconfig(ctx, "kube-system", account, l.kubeconfig("target")); err != nil {
		return err
	}
	return l.installCredentials(ctx)
}

// kubeconfig returns the path of MCM's kubeconfig for a cluster.
func (l *Landscape) kubeconfig(of string) string { return filepath.Join(l.dir, of+"-mcm.kubeconfig") }

// installCredentials creates the kubemark module's account in the target cluster, and stores its token in the control
// cluster.
func (l *Landscape) installCredentials(ctx context.Context) error {
	_, err := l.KubectlTarget(ctx, "", "create", "namespace", Namespace)
	if err != nil && !strings.Contains(err.Error(), "AlreadyExists") {
		return err
	}
	if err := l.target.ApplyCredentials(ctx, l.Target.Server()); err != nil {
		return err
	}
	out, err := l.KubectlTarget(ctx, "", "get", "secret", "kubemark-credentials", "--namespace", Namespace, "-o", "json")
	if err != nil {
		return err
	}
	var made struct {
		Data map[string][]byte `json:"data"`
	}
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		return fmt.Errorf("reading the credentials: %w", err)
	}
	made.Data["userData"] = []byte(userData)
	secret, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": Secret, "namespace": Namespace},
		"data": made.Data,
	})
	if err != nil {
		return fmt.Errorf("encoding the Secret: %w", err)
	}
	return l.Lab.Apply(ctx, string(secret))
}

// KubectlTarget runs kubectl as the target cluster's administrator, and returns its output.
func (l *Landscape) KubectlTarget(ctx context.Context, input string, arguments ...string) (string, error) {
	return l.target.Run(ctx, input, arguments...)
}

// Class returns the manifest of a MachineClass for simulated Nodes with this many CPUs.
func Class(name string, cpu int) string {
	return fmt.Sprintf(`
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineClass
metadata: {name: %s, namespace: %s}
provider: machine-iac
nodeTemplate:
  capacity: {cpu: "%[3]d", gpu: "0", memory: 16Gi}
  instanceType: kubemark.%[3]d
  region: region-a
  zone: zone-a
secretRef: {name: %[4]s, namespace: %[2]s}
providerSpec:
  apiVersion: kubemarkproviderconfig.openshift.io/v1alpha1
  kind: KubemarkMachineProviderConfig
  cpu: %[3]d
  memory: 16Gi
  instanceType: kubemark.%[3]d
  region: region-a
  zone: zone-a
`, name, Namespace, cpu, Secret)
}

// Deployment returns the manifest of a MachineDeployment.
func Deployment(name, class string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: {name: %s, namespace: %s}
spec:
  replicas: %d
  minReadySeconds: 0
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  selector:
    matchLabels: {name: %[1]s}
  template:
    metadata:
      labels: {name: %[1]s}
    spec:
      class: {kind: MachineClass, name: %[4]s}
      nodeTemplate:
        metadata:
          labels: {node-role.kubernetes.io/worker: ""}
`, name, Namespace, replicas, class)
}
