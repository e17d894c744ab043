package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

// answerTime bounds a request to a cluster that may be unreachable.
const answerTime = 15 * time.Second

// target is the cluster of a kubeconfig context, with the demo's data folder.
type target struct {
	lab     *lab.Lab
	config  *clientcmdapi.Config
	cluster *clientcmdapi.Cluster
	// known reports that, according to the data folder, the demo is installed in this cluster.
	known bool
	lock  *os.File
}

func runInCurrent(ctx context.Context, o options) (err error) {
	var running lab.Running
	defer func() { err = running.End(ctx, err) }()
	t, err := openTarget(o.dir, false)
	if err != nil {
		return err
	}
	running.Add(t.close)
	i, err := t.install(ctx, o)
	if err != nil {
		return errors.Join(err, t.forgetUnlessKnown())
	}
	running.Add(func() error {
		fmt.Println("stopped; what the demo installed stays, 'make demo-down' removes it")
		return nil
	})
	fmt.Println("installing into namespace", lab.Namespace)
	if err := i.apply(ctx); err != nil {
		return err
	}
	manager, err := i.start(ctx, &running)
	if err != nil {
		return err
	}
	explore := func(ctx context.Context) error { return t.explore(ctx, i) }
	if manager == nil {
		return explore(ctx)
	}
	return manager.During(ctx, explore)
}

// explore applies the example, shows what happens, and stays until interrupted.
func (t *target) explore(ctx context.Context, i *installation) error {
	fmt.Println("applying", example)
	if err := i.applyExample(ctx); err != nil {
		return err
	}
	if err := watch(ctx, t.lab); err != nil {
		return err
	}
	if err := t.lab.Show(ctx, machineSets, machines, "nodes"); err != nil {
		return err
	}
	fmt.Printf(`
Try next, in another terminal, with context %s:

  kubectl -n %s scale %s %s --replicas=10
  kubectl -n %[2]s get %[5]s --watch
  %[6]s -n %[2]s tree

Logs are in %[7]s. Interrupt this command to stop it; 'make demo-down' removes what it installed.
`, t.config.CurrentContext, lab.Namespace, machineSets, machineSet, machines,
		t.lab.Path("bin", "kubectl-machine"), filepath.Join(t.lab.Dir(), "logs"))
	<-ctx.Done()
	return nil
}

// openTarget opens the current context's cluster or, if remembered is set, the one recorded in the data folder, if any.
func openTarget(dir string, remembered bool) (*target, error) {
	dir, err := dataFolder(dir)
	if err != nil {
		return nil, err
	}
	if err := claim(dir); err != nil {
		return nil, err
	}
	t := &target{}
	if t.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("locking the data folder: %w", err)
	}
	if err := syscall.Flock(int(t.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = fmt.Errorf("locking %s: %w: another demo uses it; interrupt that one first", dir, err)
		return nil, errors.Join(err, t.close())
	}
	if err := t.read(dir, remembered); err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.lab, err = lab.Attach(lab.Options{Dir: dir, Progress: os.Stdout}, filepath.Join(dir, kubeconfigFile))
	return t, err
}

const (
	// kubeconfigFile, in the data folder, records the demo's cluster.
	kubeconfigFile = "admin.kubeconfig"
	chooseContext  = "choose a context with 'kubectl config use-context'"
)

func dataFolder(dir string) (string, error) {
	return filepath.Abs(cmp.Or(dir, ".dev-current"))
}

// claim creates the data folder. An existing one must be empty or an earlier demo's, because the demo deletes it on
// exit.
func claim(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the data folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the data folder: %w", err)
	}
	mark := filepath.Join(dir, ".machine-iac-demo")
	if _, err := os.Stat(mark); err != nil && len(entries) > 0 {
		return fmt.Errorf("data folder %s has files that are not the demo's: choose an empty or a new one", dir)
	}
	return os.WriteFile(mark, nil, 0o600)
}

// read reads the kubeconfig and stores it in the data folder.
func (t *target) read(dir string, remembered bool) error {
	file := filepath.Join(dir, kubeconfigFile)
	before, err := clientcmd.LoadFromFile(file)
	t.known = err == nil && clusterOf(before) != nil
	if !t.known && remembered && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s does not say where the demo is installed: add --cluster=current to take the current "+
			"context, after you removed the file", file)
	}
	if t.known && remembered {
		t.config = before
	} else if t.config, err = clientcmd.NewDefaultClientConfigLoadingRules().Load(); err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := errors.Join(clientcmdapi.MinifyConfig(t.config), clientcmdapi.FlattenConfig(t.config)); err != nil {
		return fmt.Errorf("reading the current context of the kubeconfig: %w; %s", err, chooseContext)
	}
	t.cluster = clusterOf(t.config)
	if t.cluster == nil {
		return fmt.Errorf("no cluster in the current context %q; %s", t.config.CurrentContext, chooseContext)
	}
	if t.known && clusterOf(before).Server != t.cluster.Server {
		return fmt.Errorf("the demo is installed in context %s (%s); "+
			"run 'make demo-down' first, or remove %s if that cluster is gone",
			before.CurrentContext, clusterOf(before).Server, dir)
	}
	if err := clientcmd.WriteToFile(*t.config, file); err != nil {
		return fmt.Errorf("keeping the kubeconfig: %w", err)
	}
	return nil
}

// clusterOf returns the current context's cluster, or nil.
func clusterOf(config *clientcmdapi.Config) *clientcmdapi.Cluster {
	if chosen := config.Contexts[config.CurrentContext]; chosen != nil {
		return config.Clusters[chosen.Cluster]
	}
	return nil
}

func (t *target) close() error { return t.lock.Close() }

func (t *target) forget() error { return os.RemoveAll(t.lab.Dir()) }

// forgetUnlessKnown removes the data folder if nothing was installed.
func (t *target) forgetUnlessKnown() error {
	if t.known {
		return nil
	}
	return t.forget()
}

// install plans the installation and asks for confirmation.
func (t *target) install(ctx context.Context, o options) (*installation, error) {
	if err := t.greet(ctx); err != nil {
		return nil, err
	}
	i, err := t.plan(ctx, o.image)
	if err != nil {
		return nil, err
	}
	if o.yes || loopback(t.cluster) {
		return i, nil
	}
	if err := t.ask(ctx); err != nil {
		return nil, err
	}
	return i, i.refuse(ctx) // check again: the user may have taken long to answer
}

func (t *target) greet(ctx context.Context) error {
	var version struct{ GitVersion string }
	out, err := t.lab.Run(ctx, "", "get", "--raw=/version", "--request-timeout="+answerTime.String())
	if err == nil {
		err = json.Unmarshal([]byte(out), &version)
	}
	if err != nil {
		return fmt.Errorf("reaching %s of context %s: %w", t.cluster.Server, t.config.CurrentContext, err)
	}
	fmt.Printf("context  %s\nserver   %s\nversion  %s\n", t.config.CurrentContext, t.cluster.Server, version.GitVersion)
	return nil
}

// loopback reports whether an API server is on this machine.
func loopback(cluster *clientcmdapi.Cluster) bool {
	server, err := url.Parse(cluster.Server)
	if err != nil || cluster.ProxyURL != "" {
		return false
	}
	return server.Hostname() == "localhost" || net.ParseIP(server.Hostname()).IsLoopback()
}

// ask prompts for confirmation and returns an error if the user declines.
func (t *target) ask(ctx context.Context) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return fmt.Errorf("cannot ask whether to install the demo into context %s (%s): "+
			"standard input is not a terminal; add --yes to install it", t.config.CurrentContext, t.cluster.Server)
	}
	fmt.Print("Install the demo into this cluster? [y/N] ")
	answers := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return fmt.Errorf("nothing was installed into context %s", t.config.CurrentContext)
	case <-ctx.Done():
		return ctx.Err()
	}
}
