package install_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// block is a part of the manual for readers to run.
var block = regexp.MustCompile("(?ms)^```(sh|shell)\n(.*?)^```$")

// notRun matches blocks that the test does not run: they need a registry, a container engine, kustomize or OpenShift's
// releases. TestTheStepsOfTheOldestManuals takes the steps of kustomize, TestTheREADMEInstalls those of make deploy,
// TestTheChartTakesOverWhatKubectlHasApplied that of Helm.
var notRun = regexp.MustCompile(`^(make (deploy|image|image-push|release)|docker (build|push)|kustomize|operator-sdk|oc) |^helm install .* --take-ownership|^kubectl (apply -f config/|wait .*crd/)`)

// clusterPrograms match blocks that need a cluster.
var clusterPrograms = regexp.MustCompile(`(?m)^(kubectl|helm) `)

// workplace is a reader's environment: the repository, with a release in dist/.
type workplace struct {
	folder, operator string
}

// TestTheCommandsOfTheManual runs the commands in docs/install.md, each way of installing on its own cluster. The
// operator runs with the installed rights, and its Deployments are rolled out.
func TestTheCommandsOfTheManual(t *testing.T) {
	long.Test(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	place := newWorkplace(t)
	ran := 0
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		commands := ""
		for _, found := range block.FindAllStringSubmatch(text, -1) {
			switch {
			case found[1] == "sh":
				commands += found[2]
				ran++
			case !everyLine(found[2], notRun):
				t.Errorf("%s has commands that could be run; mark them as sh:\n%s", title, found[2])
			}
		}
		if commands != "" {
			t.Run(title, func(t *testing.T) { place.section(t, title, commands) })
		}
	}
	if ran < 10 {
		t.Errorf("%d blocks were run, want those of docs/install.md", ran)
	}
}

func everyLine(text string, is *regexp.Regexp) bool {
	for line := range strings.Lines(text) {
		if !is.MatchString(line) {
			return false
		}
	}
	return true
}

// newWorkplace makes a release and builds the operator.
func newWorkplace(t *testing.T) workplace {
	t.Helper()
	p := workplace{folder: t.TempDir()}
	p.operator = filepath.Join(p.folder, "operator")
	for _, arguments := range [][]string{
		{"run", "./hack/packaging", "release", "-version", "v1.2.3", "-o", filepath.Join(p.folder, "dist")},
		{"build", "-o", p.operator, "./cmd/machine-api-operator"},
	} {
		command := exec.CommandContext(t.Context(), "go", arguments...)
		command.Dir = root
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
	}
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"install", "modules"} {
		if err := os.Symlink(filepath.Join(repository, name), filepath.Join(p.folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// section runs the commands of a section of the manual.
func (p workplace) section(t *testing.T, title, commands string) {
	c := &cluster{}
	switch {
	case !clusterPrograms.MatchString(commands):
	case title == "OpenShift":
		c = startOpenShift(t)
	case title == "Kubemark":
		c = start(t)
		c.kubectl(t, "create", "namespace", namespace)
	default:
		c = start(t, withoutCRDs)
	}
	if c.plane != nil {
		p.starts(t, c)
	}
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", commands)
	command.Dir = p.folder
	home := t.TempDir()
	command.Env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "KUBECONFIG=" + c.kubeconfig,
		"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home,
	}
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// starts runs a cluster's operator until the test ends.
func (p workplace) starts(t *testing.T, c *cluster) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.operate(ctx, c) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// operate simulates a cluster's handling of the operator's Deployment: it runs the operator as soon as it is allowed
// to, and rolls out the operator's Deployments.
func (p workplace) operate(ctx context.Context, c *cluster) error {
	installed := &appsv1.Deployment{}
	until := func(object client.Object, key client.ObjectKey) error {
		return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			return c.plane.Client.Get(ctx, key, object) == nil, nil
		})
	}
	if err := until(installed, operatorKey); err != nil {
		return ignoreEnd(ctx, err)
	}
	kubeconfig, err := c.as(ctx, installed.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	defer func() { _ = os.Remove(kubeconfig) }()
	command := exec.CommandContext(ctx, p.operator, "--kubeconfig", kubeconfig, "--namespace", namespace,
		"--release-version", "1.2.3",
		"--image", installed.Spec.Template.Spec.Containers[0].Image,
		"--metrics-bind-address", "0", "--health-addr", "0")
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 20 * time.Second
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		return err
	}
	rollingOut := c.rollOut(ctx)
	if err := command.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the operator ended: %w\n%s", err, out.String())
	}
	return ignoreEnd(ctx, <-rollingOut)
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// as returns the path of a service account's kubeconfig.
func (c *cluster) as(ctx context.Context, name string) (string, error) {
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := c.plane.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		return "", err
	}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	file, err := os.CreateTemp("", "kubeconfig-")
	if err != nil {
		return "", err
	}
	return file.Name(), errors.Join(file.Close(), clientcmd.WriteToFile(*config, file.Name()))
}

// rollOut reports each state of the controllers' Deployment as rolled out, for longer than the operator waits.
func (c *cluster) rollOut(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() {
		done <- wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			made := &appsv1.Deployment{}
			if err := c.plane.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "machine-api-controllers"},
				made); err != nil || made.Status.ObservedGeneration == made.Generation {
				return false, nil
			}
			replicas := *made.Spec.Replicas
			made.Status = appsv1.DeploymentStatus{
				ObservedGeneration: made.Generation, Replicas: replicas, UpdatedReplicas: replicas,
				ReadyReplicas: replicas, AvailableReplicas: replicas,
				Conditions: []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue,
					LastTransitionTime: metav1.NewTime(time.Now().Add(-4 * time.Minute)),
				}},
			}
			_ = c.plane.Client.Status().Update(ctx, made) // retried
			return false, nil
		})
	}()
	return done
}
