package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
)

const (
	// operatorAccount is the ServiceAccount of machine-api-operator, and the component label of its Pods.
	operatorAccount = "machine-api-operator"
	// settings is the ConfigMap with the administrator's settings.
	settings = "machine-api-operator-config"
	// ControlPlane is the Node of the operator's and controllers' Pods. It has no Machine.
	ControlPlane = "control-plane"
	// operatorStop bounds the shutdown of machine-api-operator.
	operatorStop = time.Minute
	// again is the delay before the lab restarts an ended program.
	again = time.Second
)

// controlPlane is a simulated Node for the Pods of one namespace, so that Deployments roll out there without a Machine.
const controlPlane = `
apiVersion: v1
kind: Node
metadata:
  name: control-plane
  labels: {node-role.kubernetes.io/control-plane: ""}
  annotations: {kwok.x-k8s.io/node: fake}
spec:
  taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]
---
apiVersion: v1
kind: Namespace
metadata:
  name: openshift-machine-api
  annotations:
    scheduler.alpha.kubernetes.io/node-selector: node-role.kubernetes.io/control-plane=
    scheduler.alpha.kubernetes.io/defaultTolerations: '[{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}]'
`

// Operator is a machine-api-operator process that the lab restarts when it ends, as a kubelet does.
type Operator struct {
	// Log is its log file.
	Log string

	lab        *Lab
	as         OperatorInstance
	kubeconfig string

	current atomic.Pointer[Process]
	metrics atomic.Value // a string
	stopped atomic.Bool
	kept    sync.WaitGroup
}

// OperatorInstance selects the machine-api-operator to run. The zero value is bin/machine-api-operator.
type OperatorInstance struct {
	Binary string
	// Version is the release's version, by default the built-in one.
	Version string
}

// startOperator applies install/kubernetes and runs the operator, which installs the controllers.
func (l *Lab) startOperator(ctx context.Context, as OperatorInstance) error {
	fmt.Fprintln(l.out, "applying install/kubernetes, and starting machine-api-operator")
	if _, err := l.kubectl(ctx, strings.NewReader(controlPlane), "apply",
		"--server-side", "--field-manager=lab", "-f", "-"); err != nil {
		return err
	}
	if err := l.ApplyTree(ctx, l.Path("install", "kubernetes")); err != nil {
		return err
	}
	if err := l.established(ctx); err != nil {
		return err
	}
	started, err := l.RunOperator(ctx, as)
	if err != nil {
		return err
	}
	l.Operator = started
	return l.Until(ctx, time.Minute, "machine-api-operator has applied the controllers",
		func(ctx context.Context) (bool, error) {
			// The operator applies the webhooks last.
			_, err := l.Kubectl(ctx, "get", "validatingwebhookconfiguration/machine-api", "deployment/"+deployment)
			return err == nil, err
		})
}

// RunOperator starts a machine-api-operator that has only its ServiceAccount's token, and waits until it is ready,
// which is before it leads.
func (l *Lab) RunOperator(ctx context.Context, as OperatorInstance) (*Operator, error) {
	o := &Operator{Log: filepath.Join(l.dir, "logs", operatorAccount+".log"), lab: l, as: as,
		kubeconfig: filepath.Join(l.dir, operatorAccount+".kubeconfig")}
	if err := cluster.ServiceAccountKubeconfig(ctx, l.kubeconfig, Namespace, operatorAccount,
		o.kubeconfig); err != nil {
		return nil, err
	}
	if err := o.launch(ctx); err != nil {
		return nil, err
	}
	keeping := context.WithoutCancel(ctx)
	o.kept.Go(func() { o.keep(keeping) })
	return o, nil
}

func (o *Operator) launch(ctx context.Context) error {
	// The operator takes the controllers' image from its own Pod.
	var pod string
	err := o.lab.Until(ctx, time.Minute, "the Pod of machine-api-operator is there",
		func(ctx context.Context) (bool, error) {
			out, err := o.lab.Kubectl(ctx, "get", "pods",
				"--selector=app.kubernetes.io/component="+operatorAccount, "--output=name")
			names := strings.Fields(out)
			if len(names) > 0 {
				pod = strings.TrimPrefix(names[0], "pod/")
			}
			return len(names) > 0, err
		})
	if err != nil {
		return err
	}
	health, err := freeAddress()
	if err != nil {
		return err
	}
	metrics, err := freeAddress()
	if err != nil {
		return err
	}
	binary := o.as.Binary
	if binary == "" {
		binary = o.lab.Path("bin", "machine-api-operator")
	}
	p := &Process{What: operatorAccount, Log: o.Log}
	environment := []string{"HOME=" + o.lab.dir, "POD_NAMESPACE=" + Namespace, "POD_NAME=" + pod,
		"RELEASE_VERSION=" + o.as.Version}
	if err := p.Start(binary, []string{
		"--kubeconfig", o.kubeconfig, "--health-addr", health, "--metrics-bind-address", metrics,
	}, environment); err != nil {
		return err
	}
	if err := o.lab.ready(ctx, p, health); err != nil {
		return err
	}
	o.current.Store(p)
	o.metrics.Store(metrics)
	return nil
}

// keep restarts it until it is stopped.
func (o *Operator) keep(ctx context.Context) {
	for {
		<-o.current.Load().Ended()
		for failed := true; failed; {
			time.Sleep(again)
			if o.stopped.Load() {
				return
			}
			failed = o.launch(ctx) != nil // see its log
		}
	}
}

// PID returns the operator's current process ID.
func (o *Operator) PID() int { return o.current.Load().PID() }

// Stop ends the operator for good.
func (o *Operator) Stop() error {
	o.stopped.Store(true)
	err := o.current.Load().Stop(operatorStop)
	o.kept.Wait()
	return errors.Join(err, o.current.Load().Stop(operatorStop)) // it may have been restarted
}

// Set replaces the operator's settings; without values it uses its defaults.
func (l *Lab) Set(ctx context.Context, values map[string]string) error {
	if len(values) == 0 {
		_, err := l.Kubectl(ctx, "delete", "configmap", settings, "--ignore-not-found")
		return err
	}
	arguments := []string{"create", "configmap", settings, "--dry-run=client", "--output=yaml"}
	for name, value := range values {
		arguments = append(arguments, "--from-literal="+name+"="+value)
	}
	manifest, err := l.Kubectl(ctx, arguments...)
	if err != nil {
		return err
	}
	return l.Apply(ctx, manifest)
}

// deployedArguments returns the arguments of the operator's Deployment, except those that name files of the image.
func (l *Lab) deployedArguments(ctx context.Context) ([]string, error) {
	if l.Operator == nil {
		return nil, nil
	}
	out, err := l.Kubectl(ctx, "get", "deployment", deployment,
		"--output", `jsonpath={range .spec.template.spec.containers[0].args[*]}{@}{"\n"}{end}`)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Split(out, "\n"), func(argument string) bool {
		_, file, _ := strings.Cut(argument, "=")
		_, err := os.Stat(file)
		return argument == "" || filepath.IsAbs(file) && err != nil
	}), nil
}
