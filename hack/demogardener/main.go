// Command demogardener shows Gardener's machine-controller-manager with this project's driver: it starts a control and
// a target cluster, applies a MachineDeployment with three replicas, rolls it over to another class, and runs until
// interrupted.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/hack/landscape"
)

const (
	folder   = ".dev-gardener"
	pool     = "workers"
	replicas = 3
	patience = 10 * time.Minute
)

func main() { os.Exit(lab.Execute(context.Background(), newCommand(), os.Args[1:])) }

func newCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demogardener",
		Short: "Run Gardener's machine-controller-manager with this project's driver",
		Long: `Run Gardener's machine-controller-manager with this project's driver on a control and a target cluster on this
machine, apply a MachineDeployment of three, roll it over to another class, and stay until interrupted. Run it in the
repository, after 'make build' and 'make tools-demo-gardener'.

Both clusters end with the demo. Their data stays in ` + folder + `.`,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := lab.UntilEnd(command.Context())
			defer stop()
			return run(ctx)
		},
	}
}

func run(ctx context.Context) (err error) {
	var running lab.Running
	defer func() { err = running.End(ctx, err) }()
	land, err := landscape.Open(ctx, ".", folder, os.Stdout)
	if err != nil {
		return err
	}
	running.Add(func() error { return land.Close(context.WithoutCancel(ctx)) })
	fmt.Println("starting the manager, machine-controller-manager, and its machine controller with the driver")
	manager, err := land.Lab.StartManager(ctx, landscape.Controllers)
	if err != nil {
		return err
	}
	running.Add(func() error { return manager.Stop(patience) })
	var started []*landscape.Process
	for _, program := range []string{landscape.MCM, landscape.Driver} {
		process, err := land.Start(program)
		if err != nil {
			return err
		}
		running.Add(func() error { return process.Stop(patience) })
		started = append(started, process)
	}
	running.Add(func() error {
		fmt.Println("stopping the programs and both clusters; their data stay in", folder)
		return nil
	})
	return manager.During(ctx, func(ctx context.Context) error {
		if err := story(ctx, land); err != nil {
			return err
		}
		invite(land, manager.Log, started)
		<-ctx.Done()
		return nil
	})
}

func story(ctx context.Context, land *landscape.Landscape) error {
	manifests := landscape.Class("small", 2) + "---" + landscape.Class("large", 4) + "---" +
		landscape.Deployment(pool, "small", replicas)
	fmt.Println("applying a MachineDeployment of class small")
	if err := land.Lab.Apply(ctx, manifests); err != nil {
		return err
	}
	if err := watch(ctx, land, "small"); err != nil {
		return err
	}
	if err := show(ctx, land); err != nil {
		return err
	}
	fmt.Println("\nrolling it over to class large")
	if _, err := land.Lab.Kubectl(ctx, "patch", "machinedeployment", pool, "--type=merge",
		"--patch", `{"spec":{"template":{"spec":{"class":{"name":"large"}}}}}`); err != nil {
		return err
	}
	if err := watch(ctx, land, "large"); err != nil {
		return err
	}
	return show(ctx, land)
}

// watch prints each change of the Machines until all of one class are Running.
func watch(ctx context.Context, land *landscape.Landscape, class string) error {
	return land.Lab.Watch(ctx, patience, "machines.machine.sapcloud.io",
		`{range .items[*]}{.metadata.name} {.spec.class.name} {.status.currentStatus.phase}{"\n"}{end}`,
		func(lines string) bool {
			return strings.Count(lines, "\n") == replicas && strings.Count(lines, " "+class+" Running\n") == replicas
		})
}

func show(ctx context.Context, land *landscape.Landscape) error {
	err := land.Lab.Show(ctx, "machinedeployments.machine.sapcloud.io", "machines.machine.sapcloud.io",
		"machines.machine.openshift.io")
	if err != nil {
		return err
	}
	out, err := land.KubectlTarget(ctx, "", "get", "nodes")
	if err == nil {
		fmt.Printf("\n$ kubectl --kubeconfig TARGET get nodes\n%s", out)
	}
	return err
}

func invite(land *landscape.Landscape, log string, started []*landscape.Process) {
	fmt.Printf(`
Try next, in another terminal:

  export KUBECONFIG=%s TARGET=%s
  alias kubectl='%s --namespace %s'
  kubectl scale machinedeployment %s --replicas=6
  kubectl get machines.machine.sapcloud.io --watch
  kubectl --kubeconfig $TARGET get nodes
  kubectl delete machinedeployment %[5]s

The logs are %s,
%s and
%s. Interrupt this command to stop everything; remove %s to forget it.
`, land.Lab.Cluster.AdminKubeconfig(), land.Target.AdminKubeconfig(), land.Lab.Path("bin", "kubectl"),
		landscape.Namespace, pool,
		log, started[0].Log, started[1].Log, filepath.Clean(folder))
}
