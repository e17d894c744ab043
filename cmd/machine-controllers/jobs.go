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

// place is where runs are carried out.
type place string

const (
	inProcess place = "process"
	inJobs    place = "jobs"
)

const (
	// jobSlack is what a Job may take beyond its run, until it is ended though its manager has not done so.
	jobSlack = 5 * time.Minute
	// jobTTL is how long a Job that has ended stays where its manager does not delete it.
	jobTTL = 10 * time.Minute
	// maxEngineFile bounds a file that engines are given, such as an authority.
	maxEngineFile = 1 << 20
	// programName is the manager's in its image.
	programName = "machine-controllers"
)

// String implements flag.Value.
func (p *place) String() string { return string(*p) }

// Set implements flag.Value.
func (p *place) Set(text string) error {
	if place(text) != inProcess && place(text) != inJobs {
		return fmt.Errorf("set it to %s or %s", inProcess, inJobs)
	}
	*p = place(text)
	return nil
}

// jobOptions are the flags about runs in Jobs.
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
	flags.Var(&o.place, "runs-in", "Where OpenTofu and Terraform run: process is this one, jobs is a Kubernetes Job for each run, which costs more and goes to where there is room. Pulumi always runs in this one.")
	flags.StringVar(&o.bindAddress, "runs-bind-address", ":9445", "With --runs-in=jobs, the address that the Pods of runs connect to, over TLS.")
	flags.StringVar(&o.address, "runs-address", os.Getenv("POD_IP"), "With --runs-in=jobs, the host under which those Pods reach this very process, with a port if that is another than the one it listens on. Default: POD_IP.")
	flags.StringVar(&o.image, "run-image", "", "With --runs-in=jobs, the image of the Pods, with this program, its engine and its providers at the same paths. Default: that of this Pod, which POD_NAME names.")
	o.cpu.Quantity, o.memory.Quantity = resource.MustParse("250m"), resource.MustParse("768Mi")
	flags.Var(&o.cpu, "run-cpu", "With --runs-in=jobs, the CPU that a run requests.")
	flags.Var(&o.memory, "run-memory", "With --runs-in=jobs, the memory that a run requests and is limited to: the engine, its providers, and the work folder, which is in memory.")
	flags.StringVar(&o.queue, "run-queue", "", "With --runs-in=jobs, the LocalQueue of Kueue that admits the Jobs. Default: none, and they start at once.")
	flags.DurationVar(&o.queueTimeout, "run-queue-timeout", 24*time.Hour, "With --run-queue, how long a run may wait until it is admitted, which is none of --run-timeout. Then it is interrupted, and tried again later.")
}

// check validates the options that concern Jobs.
func (o *options) checkJobs() error {
	j := &o.jobs
	if j.place != inJobs {
		return nil
	}
	switch {
	case !o.leaderElect:
		return errors.New("--runs-in=jobs needs --leader-elect: without it nothing proves that the Jobs of a manager that has died have ended")
	case j.address == "":
		return errors.New("--runs-in=jobs needs to know where Pods reach this process: set --runs-address, or POD_IP")
	case j.image == "" && os.Getenv("POD_NAME") == "":
		return errors.New("--runs-in=jobs needs an image for the Pods: set --run-image, or POD_NAME to use that of this Pod")
	case j.cpu.Sign() < 0 || j.memory.Sign() <= 0:
		return fmt.Errorf("--run-cpu is %s and --run-memory %s; set them to amounts such as 250m and 768Mi", j.cpu.String(), j.memory.String())
	}
	if problems := validation.IsDNS1123Subdomain(j.queue); j.queue != "" && len(problems) > 0 {
		return fmt.Errorf("--run-queue is %q, which cannot be the name of a LocalQueue: %s", j.queue, strings.Join(problems, ", "))
	}
	if _, _, err := net.SplitHostPort(j.bindAddress); err != nil {
		return fmt.Errorf("--runs-bind-address is %q: %w; set it to an address such as :9445", j.bindAddress, err)
	}
	return nil
}

// newJobs returns what carries runs out in Jobs.
func newJobs(ctx context.Context, o options, live client.Client, leader *leading) (*jobs.Runner, error) {
	template, err := o.jobTemplate(ctx, live)
	if err != nil {
		return nil, err
	}
	server, err := remote.NewServer(remote.ServerOptions{
		Listen: o.jobs.bindAddress, Advertise: o.jobs.address, Active: leader.Active, Logger: ctrl.Log.WithName("runs-server"),
	})
	if err != nil {
		return nil, err
	}
	ctrl.Log.Info("Runs go to Jobs", "image", template.Image, "queue", o.jobs.queue, "address", o.jobs.address)
	return jobs.New(jobs.Options{
		Client: live, Namespace: o.namespace, Template: template, Server: server,
		Backend:  backend.New(backend.Options{Logger: ctrl.Log.WithName("state-backend")}),
		Settings: o.runSettings, Manager: leader.Epoch().Holder, InterruptGrace: o.interruptGrace, Life: o.timing.Heartbeat, Grace: o.timing.Grace,
		Dir: filepath.Join(o.workDir, "jobs"), Logger: ctrl.Log.WithName("jobs"),
	})
}

// jobTemplate returns what all Jobs have in common, with what they have from the manager's own Pod.
func (o *options) jobTemplate(ctx context.Context, live client.Reader) (jobs.Template, error) {
	t := jobs.Template{
		Image: o.jobs.image, Queue: o.jobs.queue,
		Command: []string{programName, runCommand, "--ticket=" + jobs.TicketDir, "--work-dir=" + jobs.VolumeDir + "/work"},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: o.jobs.cpu.Quantity, corev1.ResourceMemory: o.jobs.memory.Quantity},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: o.jobs.memory.Quantity},
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
		return t, fmt.Errorf("reading this process's own Pod, which POD_NAMESPACE and POD_NAME name, for --runs-in=jobs: %w", err)
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

// runSettings are those of the manager that count for an engine in another process. They may hold secrets.
type runSettings struct {
	Engine, EnginePath, EngineVersion string
	EngineInstall                     bool
	Environment                       map[string]string
	ProviderMirror                    string
	AllowDownloads                    bool
	Sandbox                           sandbox.Mode
	SandboxRead                       []string
	InterruptGrace, Grace             time.Duration
	// Files are those that variables name and no image has, such as the cluster's authorities, by their paths in the manager's.
	Files map[string][]byte
}

func (o *options) runSettings() ([]byte, error) {
	s := runSettings{
		Engine: o.engine, EnginePath: o.enginePath, EngineVersion: o.engineVersion, EngineInstall: o.engineInstall, Environment: o.engineEnvironment,
		ProviderMirror: o.providerMirror, AllowDownloads: o.allowDownloads, Sandbox: o.sandbox, SandboxRead: o.sandboxRead,
		InterruptGrace: o.interruptGrace, Grace: o.timing.Grace, Files: map[string][]byte{},
	}
	authorities, err := filepath.Glob(filepath.Join(authoritiesDir(*o), "*"))
	if err != nil {
		return nil, fmt.Errorf("listing the cluster's authorities: %w", err)
	}
	for _, path := range slices.Concat(authorities, sandbox.Named(o.engineEnvironment)) {
		found, err := os.Stat(path)
		if err != nil || !found.Mode().IsRegular() || found.Size() > maxEngineFile {
			continue // a folder or a program is one of the image
		}
		if s.Files[path], err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("reading what engines are to have: %w", err)
		}
	}
	return json.Marshal(s)
}
