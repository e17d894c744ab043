package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/jobs"
	"github.com/machine-iac/machine-iac-operator/actuators/remote"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
)

// place is where runs execute.
type place string

const (
	inProcess place = "process"
	inJobs    place = "jobs"
)

const (
	// jobSlack is how much longer than its run a Job may take before it is ended without its
	// manager.
	jobSlack = 5 * time.Minute
	// jobTTL is how long a finished Job remains if its manager does not delete it.
	jobTTL = 10 * time.Minute
	// maxEngineFile bounds a file given to engines, such as a CA certificate.
	maxEngineFile = 1 << 20
	// programName is the manager's program in its image.
	programName = "machine-controllers"
)

// String implements flag.Value.
func (p *place) String() string { return string(*p) }

// Set implements flag.Value.
func (p *place) Set(text string) error {
	if place(text) != inProcess && place(text) != inJobs {
		return fmt.Errorf("must be %s or %s", inProcess, inJobs)
	}
	*p = place(text)
	return nil
}

// jobOptions are the flags for runs in Jobs.
type jobOptions struct {
	place       place
	bindAddress string
	address     string
	image       string
	cpu, memory resource.QuantityValue
	queue       string
	// queueTimeout is how long a run may wait in that queue.
	queueTimeout time.Duration
}

func (o *jobOptions) bind(flags *flag.FlagSet) {
	o.place = inProcess
	flags.Var(&o.place, "runs-in",
		"Where OpenTofu and Terraform run: process runs them in the manager's Pod, jobs in a Kubernetes Job per run, "+
			"which costs more but is scheduled wherever there is room. Pulumi always runs in the manager's Pod.")
	flags.StringVar(&o.bindAddress, "runs-bind-address", ":9445",
		"With --runs-in=jobs, the listen address for the Pods of runs, which connect over TLS.")
	flags.StringVar(&o.address, "runs-address", os.Getenv("POD_IP"),
		"With --runs-in=jobs, the host at which those Pods reach this process, with a port if it differs from the listen "+
			"port. Default: POD_IP.")
	flags.StringVar(&o.image, "run-image", "",
		"With --runs-in=jobs, the image of the Pods, with this program, its engine and its providers at the same paths. "+
			"Default: the image of the Pod named by POD_NAME.")
	o.cpu.Quantity, o.memory.Quantity = resource.MustParse("250m"), resource.MustParse("768Mi")
	flags.Var(&o.cpu, "run-cpu", "With --runs-in=jobs, the CPU that a run requests.")
	flags.Var(&o.memory, "run-memory",
		"With --runs-in=jobs, the memory request and limit of a run: the engine, its providers, and the work folder, "+
			"which is in memory.")
	flags.StringVar(&o.queue, "run-queue", "",
		"With --runs-in=jobs, the Kueue LocalQueue that admits the Jobs. Default: none; Jobs start at once.")
	flags.DurationVar(&o.queueTimeout, "run-queue-timeout", 24*time.Hour,
		"With --run-queue, how long a run may wait for admission before it is interrupted and retried later. This does "+
			"not count towards --run-timeout.")
}

// checkJobs validates the flags for runs in Jobs.
func (o *options) checkJobs() error {
	j := &o.jobs
	if j.place != inJobs {
		return nil
	}
	switch {
	case !o.leaderElect:
		return errors.New("--runs-in=jobs requires --leader-elect: without it, nothing proves that the Jobs of a dead " +
			"manager have ended")
	case j.address == "":
		return errors.New("--runs-in=jobs requires an address for the Pods: set --runs-address or POD_IP")
	case j.image == "" && os.Getenv("POD_NAME") == "":
		return errors.New("--runs-in=jobs requires an image for the Pods: set --run-image, or POD_NAME to use this Pod's " +
			"image")
	case j.cpu.Sign() < 0 || j.memory.Sign() <= 0:
		return fmt.Errorf("invalid --run-cpu %s or --run-memory %s; use amounts such as 250m and 768Mi", j.cpu.String(),
			j.memory.String())
	}
	if problems := validation.IsDNS1123Subdomain(j.queue); j.queue != "" && len(problems) > 0 {
		return fmt.Errorf("invalid --run-queue %q: not the name of a LocalQueue: %s", j.queue, strings.Join(problems, ", "))
	}
	if _, _, err := net.SplitHostPort(j.bindAddress); err != nil {
		return fmt.Errorf("invalid --runs-bind-address %q: %w; use an address such as :9445", j.bindAddress, err)
	}
	return nil
}

// newJobs returns the runner that executes runs in Jobs.
func newJobs(ctx context.Context, o options, live client.Client, leader *leading) (*jobs.Runner, error) {
	template, err := o.jobTemplate(ctx, live)
	if err != nil {
		return nil, err
	}
	server, err := remote.NewServer(remote.ServerOptions{
		Listen: o.jobs.bindAddress, Advertise: o.jobs.address, Active: leader.Active,
		Logger: ctrl.Log.WithName("runs-server"),
	})
	if err != nil {
		return nil, err
	}
	ctrl.Log.Info("Engine runs execute in Jobs", "image", template.Image, "queue", o.jobs.queue, "address", o.jobs.address)
	return jobs.New(jobs.Options{
		Client: live, Namespace: o.namespace, Template: template, Server: server,
		Backend:  backend.New(backend.Options{Logger: ctrl.Log.WithName("state-backend")}),
		Settings: o.runSettings, Manager: leader.Epoch().Holder, InterruptGrace: o.interruptGrace, Life: o.timing.Heartbeat,
		Grace: o.timing.Grace,
		Dir:   filepath.Join(o.workDir, "jobs"), Logger: ctrl.Log.WithName("jobs"),
	})
}

// jobTemplate returns the common part of all Jobs, including settings of the manager's own Pod.
func (o *options) jobTemplate(ctx context.Context, live client.Reader) (jobs.Template, error) {
	t := jobs.Template{
		Image: o.jobs.image, Queue: o.jobs.queue,
		Command: []string{programName, runCommand, "--ticket=" + jobs.TicketDir, "--work-dir=" + jobs.VolumeDir + "/work"},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: o.jobs.cpu.Quantity,
				corev1.ResourceMemory: o.jobs.memory.Quantity},
			Limits: corev1.ResourceList{corev1.ResourceMemory: o.jobs.memory.Quantity},
		},
		DeadlineSeconds: int64((o.runTimeout + o.interruptGrace + jobSlack).Seconds()), TTLSeconds: int32(jobTTL.Seconds()),
		GraceSeconds: int64(o.stopTimeout().Seconds()),
	}
	name, namespace := os.Getenv("POD_NAME"), os.Getenv("POD_NAMESPACE")
	if name == "" || namespace == "" {
		return t, nil
	}
	var own corev1.Pod
	if err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &own); err != nil {
		return t, fmt.Errorf("reading the manager's Pod, named by POD_NAMESPACE and POD_NAME, for --runs-in=jobs: %w", err)
	}
	t.Like, t.ServiceAccount = &own.Spec, own.Spec.ServiceAccountName
	if own.Namespace == o.namespace {
		t.Owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: own.Name, UID: own.UID}
	}
	if t.Image == "" {
		at := slices.IndexFunc(own.Spec.Containers, func(one corev1.Container) bool { return one.Name == programName })
		t.Image = own.Spec.Containers[max(at, 0)].Image
	}
	return t, nil
}

// runSettings are the manager's settings for an engine in another process. They may contain
// secrets.
type runSettings struct {
	Engine, EnginePath, EngineVersion string
	EngineInstall                     bool
	Environment                       map[string]string
	ProviderMirror                    string
	AllowDownloads                    bool
	Sandbox                           sandbox.Mode
	SandboxRead                       []string
	InterruptGrace, Grace             time.Duration
	// Files are files that environment variables name and that no image has, such as the cluster's
	// CA certificates, by their paths in the manager.
	Files map[string][]byte
}

func (o *options) runSettings() ([]byte, error) {
	s := runSettings{
		Engine: o.engine, EnginePath: o.enginePath, EngineVersion: o.engineVersion, EngineInstall: o.engineInstall,
		Environment:    o.engineEnvironment,
		ProviderMirror: o.providerMirror, AllowDownloads: o.allowDownloads, Sandbox: o.sandbox, SandboxRead: o.sandboxRead,
		InterruptGrace: o.interruptGrace, Grace: o.timing.Grace, Files: map[string][]byte{},
	}
	authorities, err := filepath.Glob(filepath.Join(authoritiesDir(*o), "*"))
	if err != nil {
		return nil, fmt.Errorf("listing the cluster's certificate authorities: %w", err)
	}
	for _, path := range slices.Concat(authorities, sandbox.Named(o.engineEnvironment)) {
		found, err := os.Stat(path)
		if err != nil || !found.Mode().IsRegular() || found.Size() > maxEngineFile {
			continue // folders and programs are in the image
		}
		if s.Files[path], err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("reading a file for engines: %w", err)
		}
	}
	return json.Marshal(s)
}
