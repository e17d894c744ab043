// Command demo shows the operator at work: it brings the development cluster up, starts the manager, applies an example MachineSet,
// shows what happens, and stays until it is interrupted.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	example    = "modules/kubemark/examples/machineset.yaml"
	machineSet = "hollow"
	replicas   = 3
	patience   = 3 * time.Minute
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := lab.Open(ctx, lab.Options{Progress: os.Stdout})
	if err != nil {
		return err
	}
	fmt.Println("starting the manager")
	manager, err := l.StartManager(ctx, "--drift-interval=1m")
	if err != nil {
		return err
	}
	defer func() {
		fmt.Println("stopping the manager; the cluster and its data stay, 'make demo-down' removes them")
		if stopErr := manager.Stop(patience); err == nil {
			err = stopErr
		}
	}()
	fmt.Println("applying", example)
	if _, err := l.Kubectl(ctx, "apply", "-f", l.Path(example)); err != nil {
		return err
	}
	if err := watch(ctx, l); err != nil {
		return err
	}
	if err := show(ctx, l); err != nil {
		return err
	}
	if _, err := l.MetricsToken(ctx); err != nil { // makes the account that the last words name
		return err
	}
	invite(l, manager)
	<-ctx.Done()
	return nil
}

// watch prints each change of the Machines' phases until all run.
func watch(ctx context.Context, l *lab.Lab) error {
	last := ""
	started := time.Now()
	return l.Until(ctx, patience, "all Machines run", func(ctx context.Context) (bool, error) {
		out, err := l.Kubectl(ctx, "get", "machines", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.phase}{"\n"}{end}`)
		if err != nil {
			return false, err
		}
		if line := strings.Join(strings.Split(strings.TrimSpace(out), "\n"), ", "); line != last {
			last = line
			fmt.Printf("%5.1fs  %s\n", time.Since(started).Seconds(), line)
		}
		return strings.Count(out, " Running\n") >= replicas, nil
	})
}

func show(ctx context.Context, l *lab.Lab) error {
	for _, what := range []string{"machinesets", "machines", "nodes"} {
		out, err := l.Kubectl(ctx, "get", what)
		if err != nil {
			return err
		}
		fmt.Printf("\n$ kubectl get %s\n%s", what, out)
	}
	return nil
}

func invite(l *lab.Lab, manager *lab.Manager) {
	fmt.Printf(`
Try next, in another terminal:

  export KUBECONFIG=%s
  alias kubectl='%s --namespace %s'
  kubectl scale machineset %s --replicas=10
  kubectl get machines --watch
  kubectl describe machine            # conditions and events
  kubectl get secrets -l tfstate=true # one state for each Machine
  kubectl delete node $(kubectl get nodes -o name | head -1 | cut -d/ -f2)  # noticed at the next drift check, within a minute
  kubectl delete machineset %s

Where to look:

  curl -sk -H "Authorization: Bearer $(kubectl create token %s)" https://%s/metrics | grep -E '^(machine_iac|mapi)_'
  install/monitoring/dashboard.json        # a dashboard, to be imported in Grafana
  install/monitoring/prometheus-rule.yaml  # alerts; docs/monitoring.md says what each one means

The manager logs to %s/logs/manager.log. Interrupt this command to stop it.
`, l.Cluster.AdminKubeconfig(), l.Path("bin", "kubectl"), lab.Namespace, machineSet, machineSet, lab.MetricsReader, manager.Metrics, l.Dir())
}
