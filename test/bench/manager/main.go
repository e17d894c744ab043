// Command manager runs the native controllers for a benchmark: the real ones, in a process of their own, with the fake actuator in
// place of an engine. It elects no leader and serves its metrics to everybody, so it is for measuring only.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/controllers/drain"
	"github.com/machine-iac/machine-iac-operator/controllers/machine"
	"github.com/machine-iac/machine-iac-operator/controllers/machineset"
	"github.com/machine-iac/machine-iac-operator/controllers/nodelink"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

type options struct {
	kubeconfig, namespace, controllers, listen, pprof string
}

func main() {
	var o options
	// A set of its own: controller-runtime puts a --kubeconfig into the common one.
	flags := flag.NewFlagSet("manager", flag.ExitOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "Path of the kubeconfig file.")
	flags.StringVar(&o.namespace, "namespace", "openshift-machine-api", "Namespace whose Machines are served.")
	flags.StringVar(&o.controllers, "controllers", machineset.Name, "Controllers to run, joined by commas.")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "Address of /metricsand /latencies, plain HTTP.")
	flags.StringVar(&o.pprof, "pprof", "", "Address of /debug/pprof; empty for none.")
	_ = flags.Parse(os.Args[1:]) // it exits when it cannot
	ctrl.SetLogger(zap.New())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // cmd/machine-controllers logs each once, which costs nothing either
	scheme, err := controlplane.Scheme()
	if err != nil {
		return err
	}
	timed := &timedActuator{Actuator: &fake.Actuator{}}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme: scheme,
		// As cmd/machine-controllers has it, so that the same is measured.
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{o.namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
		},
		Metrics:          metricsserver.Options{BindAddress: o.listen, ExtraHandlers: map[string]http.Handler{"/latencies": timed}},
		PprofBindAddress: o.pprof,
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	for name := range strings.SplitSeq(o.controllers, ",") {
		start, known := starters[name]
		if !known {
			return fmt.Errorf("adding controllers: there is no %q", name)
		}
		if err := start(ctx, mgr, timed); err != nil {
			return fmt.Errorf("adding the %s controller: %w", name, err)
		}
	}
	return mgr.Start(ctx)
}

var starters = map[string]func(context.Context, manager.Manager, *timedActuator) error{
	machineset.Name: func(ctx context.Context, mgr manager.Manager, _ *timedActuator) error {
		return machineset.SetupWithManager(ctx, mgr, machineset.Options{})
	},
	machine.Name: func(_ context.Context, mgr manager.Manager, actuator *timedActuator) error {
		series := machine.NewMetrics()
		metrics.Registry.MustRegister(series.Collectors()...)
		return machine.SetupWithManager(mgr, machine.Options{Actuator: actuator, Metrics: series})
	},
	drain.Name: func(_ context.Context, mgr manager.Manager, _ *timedActuator) error {
		clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return err
		}
		return drain.SetupWithManager(mgr, drain.Options{Clientset: clientset})
	},
	nodelink.Name: func(ctx context.Context, mgr manager.Manager, _ *timedActuator) error {
		return nodelink.SetupWithManager(ctx, mgr, nodelink.Options{})
	},
}

// touched is an annotation with the time at which the benchmark wrote it.
const touched = "bench.machine-iac.io/touched"

// timedActuator is the fake actuator that also notes, for each touch of a Machine, how long it took until the Machine was updated.
// It serves what it has noted since it was last asked, as nanoseconds in JSON.
type timedActuator struct {
	*fake.Actuator

	mu   sync.Mutex
	seen map[string]bool
	took []time.Duration
}

// Update implements actuators.Actuator.
func (a *timedActuator) Update(ctx context.Context, machine *machinev1beta1.Machine) error {
	err := a.Actuator.Update(ctx, machine)
	if mark := machine.Annotations[touched]; mark != "" {
		a.note(machine.Name+" "+mark, mark)
	}
	return err
}

func (a *timedActuator) note(key, mark string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, err := time.Parse(time.RFC3339Nano, mark)
	if err != nil || a.seen[key] {
		return
	}
	if a.seen == nil {
		a.seen = map[string]bool{}
	}
	a.seen[key] = true
	a.took = append(a.took, time.Since(at))
}

// ServeHTTP implements http.Handler.
func (a *timedActuator) ServeHTTP(writer http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	took := slices.Clone(a.took)
	a.took = nil
	a.mu.Unlock()
	_ = json.NewEncoder(writer).Encode(took) // a client that has gone needs no response
}
