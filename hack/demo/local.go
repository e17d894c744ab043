package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	// The operator reports Available three minutes after the controllers become available.
	rolledOut = 5 * time.Minute
	status    = "machineapioperator/machine-api"
)

// runLocally runs the demo on a development cluster.
func runLocally(ctx context.Context, dir string) (err error) {
	var running lab.Running
	defer func() { err = running.End(ctx, err) }()
	l, err := lab.Open(ctx, lab.Options{Dir: dir, Progress: os.Stdout, Operator: true})
	if err != nil {
		return err
	}
	running.Add(l.Operator.Stop)
	fmt.Println("starting the manager")
	manager, err := l.StartManager(ctx, "--drift-interval=1m")
	if err != nil {
		return err
	}
	running.Add(func() error {
		fmt.Println("stopping the manager; the cluster and its data stay, 'make demo-down' removes them")
		return manager.Stop(patience)
	})
	if err := manager.WriteScript(); err != nil {
		return err
	}
	running.Add(func() error { return os.Remove(l.Script()) })
	return manager.During(ctx, func(ctx context.Context) error { return explore(ctx, l, manager) })
}

// explore applies the example, shows what happens, and stays until interrupted.
func explore(ctx context.Context, l *lab.Lab, manager *lab.Manager) error {
	fmt.Println("applying", example)
	if _, err := l.Kubectl(ctx, "apply", "-f", l.Path(example)); err != nil {
		return err
	}
	if err := watch(ctx, l); err != nil {
		return err
	}
	if err := l.Show(ctx, "machinesets", "machines", "nodes", "deployments"); err != nil {
		return err
	}
	if _, err := l.MetricsToken(ctx); err != nil { // creates the account that pointOut mentions
		return err
	}
	fmt.Println("\nrolling out changes of a MachineDeployment, in place and by replacement")
	if err := l.Play(ctx, fmt.Sprintf(rollouts, filepath.Join(l.Dir(), "pool.yaml"), lab.Namespace)); err != nil {
		return err
	}
	invite(l)
	if err := available(ctx, l); err != nil || ctx.Err() != nil {
		return err
	}
	pointOut(l, manager)
	<-ctx.Done()
	return nil
}

// rollouts are the commands of docs/rollouts.md.
const rollouts = `kubectl apply -f modules/kubemark/examples/machinedeployment.yaml
kubectl machine rollout status machinedeployment/pool -n %[2]s
sed 's/team: platform/team: search/' modules/kubemark/examples/machinedeployment.yaml >%[1]s
kubectl machine plan --live -f %[1]s --expect in-place
kubectl apply -f %[1]s
kubectl machine rollout status machinedeployment/pool -n %[2]s
sed -i 's/cpu: 4/cpu: 8/' %[1]s
kubectl machine plan --live -f %[1]s || test $? = 2 # Machines would be replaced
kubectl apply -f %[1]s
kubectl machine rollout status machinedeployment/pool -n %[2]s
kubectl machine tree machinedeployment/pool -n %[2]s
`

// available waits until the operator reports Available, and prints its status. An interrupt ends the demo without an
// error.
func available(ctx context.Context, l *lab.Lab) error {
	fmt.Printf("\nMeanwhile, until the controllers have been available for three minutes:\n\n$ kubectl wait "+
		"--for=condition=Available --timeout=%s %s\n", rolledOut, status)
	_, err := l.Kubectl(ctx, "wait", "--for=condition=Available", "--timeout="+rolledOut.String(), status)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; the operator's log is %s", err, l.Operator.Log)
	}
	out, err := l.Kubectl(ctx, "get", status)
	if err != nil {
		return err
	}
	fmt.Printf("%s condition met\n\n$ kubectl get %s\n%s", status, status, out)
	return nil
}

// watch prints each change of the Machines' phases until all are Running.
func watch(ctx context.Context, l *lab.Lab) error {
	return l.Watch(ctx, patience, machines, `{range .items[*]}{.metadata.name} {.status.phase}{"\n"}{end}`,
		func(lines string) bool { return strings.Count(lines, " Running\n") >= replicas })
}

func invite(l *lab.Lab) {
	fmt.Printf(`
Try next, in another terminal:

  export KUBECONFIG=%s
  alias kubectl='%s --namespace %s'
  kubectl scale machineset %s --replicas=10
  kubectl get machines --watch
  kubectl describe machine            # conditions and events
  kubectl get secrets -l tfstate=true # one state for each Machine
  kubectl delete node $(kubectl get nodes -l node-role.kubernetes.io/worker -o name | head -1 | cut -d/ -f2)  # noticed at the next drift check, within a minute
  kubectl delete deployment machine-api-controllers    # the operator brings it back
  kubectl delete machineset %[4]s
  %[5]s --namespace %[3]s rollout undo machinedeployment/pool
`, l.Cluster.AdminKubeconfig(), l.Path("bin", "kubectl"), lab.Namespace, machineSet, l.Path("bin", "kubectl-machine"))
}

// pointOut prints where to look next.
func pointOut(l *lab.Lab, manager *lab.Manager) {
	plugin := l.Path("bin", "kubectl-machine") + " --namespace " + lab.Namespace
	fmt.Printf(`
Where to look (the plugin needs KUBECONFIG as above):

  the installation             kubectl get machineapioperators; kubectl describe %s
  Machines, instances, Nodes   %s tree
  runs of the engine           %[2]s runs
  log of the manager           %s
  log of the operator          %s
  logs of the cluster          %s
  series of the manager        curl -sk -H "Authorization: Bearer $(kubectl create token %s)" https://%s/metrics | grep -E '^(machine_iac|mapi)_'
  dashboard for Grafana        install/monitoring/dashboard.json
  alerts                       install/monitoring/prometheus-rule.yaml; docs/monitoring.md says what each one means

Interrupt this command to stop the manager and the operator.
`, status, plugin, manager.Log, l.Operator.Log, filepath.Join(l.Dir(), "logs"), lab.MetricsReader, manager.Metrics)
}
