package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	// deletion bounds the deletion of Machines and their Nodes.
	deletion = 10 * time.Minute
	// neededByMachines is the finalizer that the manager keeps on Secrets until the last Machine is gone.
	neededByMachines = "machine-iac.io/needed-by-machines"
)

// takeDown deletes the local cluster and the demo's objects in another cluster, or only the one named on the command
// line.
func (o options) takeDown(ctx context.Context, named bool) error {
	if o.dir != "" && !named {
		return lab.Usage("--dir %s does not say which demo it is of; add --cluster", o.dir)
	}
	var failed error
	if !named || o.cluster == local {
		failed = purge(ctx, o.dir)
	}
	dir, err := dataFolder(o.dir)
	if err != nil {
		return errors.Join(failed, err)
	}
	_, err = os.Stat(filepath.Join(dir, kubeconfigFile))
	if named && o.cluster == current || !named && err == nil {
		failed = errors.Join(failed, takeDownCurrent(ctx, o.dir))
	}
	return failed
}

func purge(ctx context.Context, dir string) error {
	dir = cmp.Or(dir, ".dev")
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		fmt.Println("no local cluster to delete in", dir)
		return nil
	}
	fmt.Println("deleting the local cluster in", dir)
	made, err := cluster.New(cluster.Options{Dir: dir})
	if err != nil {
		return err
	}
	return made.Purge(ctx)
}

// takeDownCurrent deletes the demo's objects from the cluster recorded in the data folder, or from the current
// context's cluster.
func takeDownCurrent(ctx context.Context, dir string) (err error) {
	var running lab.Running
	defer func() { err = running.End(context.Background(), err) }()
	t, err := openTarget(dir, true)
	if err != nil {
		return err
	}
	running.Add(t.close)
	if err := t.greet(ctx); err != nil {
		err = fmt.Errorf("%w; if that cluster is gone, remove %s", err, t.lab.Dir())
		return errors.Join(err, t.forgetUnlessKnown())
	}
	i := &installation{lab: t.lab}
	installed, err := i.installed(ctx)
	if err != nil {
		return err
	}
	i.image = strings.TrimPrefix(installed, "|")
	if err := i.refuseOthers(ctx); err != nil {
		return err
	}
	if err := i.deleteMachines(ctx); err != nil {
		return err
	}
	if i.image != "" {
		if err := i.uninstall(ctx, filepath.Join(t.lab.Dir(), kubeconfigFile)); err != nil {
			return err
		}
	}
	if err := i.delete(ctx, installed != ""); err != nil {
		return err
	}
	fmt.Println("nothing of the demo is left in context", t.config.CurrentContext)
	return t.forget()
}

// refuseOthers returns an error if the cluster has Machines or an operator that the demo did not create.
func (i *installation) refuseOthers(ctx context.Context) error {
	crds, err := i.lab.Run(ctx, "", "get", "crd", "--selector="+label, "--output=name")
	if err != nil {
		return err
	}
	for kind, field := range map[string]string{machines: ".spec", machineSets: ".spec.template.spec"} {
		if !strings.Contains(crds, "/"+kind) {
			continue
		}
		format := `jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {` + field +
			`.providerSpec.value.kind}{"\n"}{end}`
		out, err := i.lab.Run(ctx, "", "get", kind, "--all-namespaces", "--output="+format)
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			name, providerSpec, _ := strings.Cut(strings.TrimSpace(line), " ")
			if !strings.HasPrefix(name, lab.Namespace+"/") || providerSpec != "KubemarkMachineProviderConfig" {
				return fmt.Errorf("%s %s is not the demo's (%s): delete it before the demo, whose manager and CRDs "+
					"it needs",
					kind, name, providerSpec)
			}
		}
	}
	operator, err := i.lab.Kubectl(ctx, "get", "deployments", "--selector=!"+label,
		"--field-selector=metadata.name=machine-api-operator", "--output=name")
	if err == nil && strings.TrimSpace(operator) != "" {
		err = fmt.Errorf("namespace %s has an operator that the demo did not install; "+
			"uninstall it with 'kubectl machine uninstall' first", lab.Namespace)
	}
	return err
}

// deleteMachines deletes all Machines and waits until their Nodes are gone. A manager must be running.
func (i *installation) deleteMachines(ctx context.Context) (err error) {
	ours, err := i.lab.Run(ctx, "", "get", "crd", "--selector="+label, "--output=name")
	if err != nil || !strings.Contains(ours, machines) {
		return err
	}
	left := func(ctx context.Context) (bool, error) {
		names, err := i.lab.Kubectl(ctx, "get", machineSets+","+machines, "--output=name")
		return strings.TrimSpace(names) != "", err
	}
	if some, err := left(ctx); err != nil || !some {
		return err
	}
	account, err := i.lab.Kubectl(ctx, "get", "serviceaccount", kwok, "--ignore-not-found", "--output=name")
	if err != nil {
		return err
	}
	i.kwok = account != ""
	var running lab.Running
	defer func() { err = running.End(context.Background(), err) }()
	if _, err := i.start(ctx, &running); err != nil {
		return err
	}
	fmt.Println("deleting MachineSets, Machines and their Nodes")
	if _, err := i.lab.Kubectl(ctx, "delete", "--all", "--wait=false", healthChecks+","+machineSets); err != nil {
		return err
	}
	return i.lab.Until(ctx, deletion, "all Machines are deleted", func(ctx context.Context) (bool, error) {
		if _, err := i.lab.Kubectl(ctx, "delete", "--all", "--wait=false", machines); err != nil {
			return false, err
		}
		if some, err := left(ctx); some || err != nil {
			return false, err
		}
		held, err := i.lab.Kubectl(ctx, "get", "secrets", "--output=jsonpath={.items[*].metadata.finalizers}")
		return !strings.Contains(held, neededByMachines), err // without a manager they cannot be deleted
	})
}

// uninstall removes the operator and everything it installed.
func (i *installation) uninstall(ctx context.Context, kubeconfig string) error {
	left, err := i.lab.Kubectl(ctx, "get", "deployments", "machine-api-operator", "machine-api-controllers",
		"--ignore-not-found", "--output=name")
	if err != nil || left == "" {
		return err
	}
	fmt.Println("uninstalling the operator")
	plugin := exec.CommandContext(ctx, i.lab.Path("bin", "kubectl-machine"),
		"uninstall", "--kubeconfig", kubeconfig, "--namespace", lab.Namespace)
	if out, err := plugin.CombinedOutput(); err != nil {
		return fmt.Errorf("uninstalling the operator: %w: %s", err, out)
	}
	return nil
}

// delete deletes everything labelled by the demo, including the namespace if the demo created it. In an existing
// namespace, it also deletes what the operator and the manager left there, if the demo was installed.
func (i *installation) delete(ctx context.Context, installed bool) error {
	const namespaced = "deployments,services,rolebindings,roles,serviceaccounts,secrets"
	selected := func(kinds string, more ...string) []string {
		return append([]string{"delete", kinds, "--selector=" + label, "--timeout=2m"}, more...)
	}
	steps := [][]string{
		selected("crd,clusterrolebindings,clusterroles"),
		selected(namespaced, "--namespace="+lab.Namespace),
		selected(namespaced, "--namespace=default"), // the Roles for Node events
	}
	if installed {
		for _, left := range append(remains, "configmaps "+record) {
			in := []string{"delete", "--ignore-not-found", "--namespace=" + lab.Namespace}
			steps = append(steps, append(in, strings.Fields(left)...))
		}
	}
	for _, arguments := range append(steps, selected("namespaces")) {
		if _, err := i.lab.Run(ctx, "", arguments...); err != nil {
			return err
		}
	}
	return nil
}
