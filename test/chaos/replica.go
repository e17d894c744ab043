package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
)

const (
	restartBackoff = time.Second
	stopTimeout    = 90 * time.Second
	// diskSize limits a manager's work folder if it is a file system of its own.
	diskSize = "size=768m"
)

// replica is one of the managers. It has its own API proxy and work folder, and is restarted when it ends.
type replica struct {
	name  string
	world *world
	proxy *apiproxy.Proxy
	// disk means that the work folder is a file system of its own, which can be full.
	disk bool

	mu      sync.Mutex
	manager *lab.Manager
	wanted  bool
	stopped bool // by SIGSTOP
	starts  int
	// renewed is the time of its last write to the Lease.
	renewed time.Time
	kept    sync.WaitGroup
	stop    context.CancelFunc
}

func newReplica(w *world, name string) (*replica, error) {
	r := &replica{name: name, world: w}
	authority, err := w.lab.Cluster.CAData()
	if err != nil {
		return nil, err
	}
	if r.proxy, err = apiproxy.Open(w.lab.Cluster.Server(), authority); err != nil {
		return nil, err
	}
	r.proxy.Audit(r.note)
	config, err := clientcmd.LoadFromFile(w.lab.OperatorKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the operator's kubeconfig: %w", err)
	}
	for _, reached := range config.Clusters {
		reached.Server, reached.CertificateAuthorityData, reached.CertificateAuthority = r.proxy.Address(),
			r.proxy.Authority(), ""
	}
	if err := clientcmd.WriteToFile(*config, r.kubeconfig()); err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of manager %s: %w", name, err)
	}
	return r, r.mount()
}

func (r *replica) kubeconfig() string {
	return filepath.Join(r.world.dir, "manager-"+r.name+".kubeconfig")
}
func (r *replica) workDir() string { return filepath.Join(r.world.dir, "work-"+r.name) }
func (r *replica) log() string     { return filepath.Join(r.world.dir, "logs", "manager-"+r.name+".log") }

// mount mounts a file system on the work folder, if permitted.
func (r *replica) mount() error {
	if err := os.MkdirAll(r.workDir(), 0o700); err != nil {
		return fmt.Errorf("making a work folder: %w", err)
	}
	r.disk = syscall.Mount("tmpfs", r.workDir(), "tmpfs", 0, diskSize+",mode=0700") == nil
	return nil
}

// note observes Lease writes through the proxy.
func (r *replica) note(request *http.Request, status int) {
	if status < http.StatusMultipleChoices && request.Method != http.MethodGet &&
		strings.Contains(request.URL.Path, "/leases") {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.renewed = time.Now()
	}
}

func (r *replica) lastRenewed() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.renewed
}

func (r *replica) start(ctx context.Context) error {
	manager, err := r.world.lab.StartInstance(ctx,
		lab.Instance{Name: r.name, Kubeconfig: r.kubeconfig()}, r.world.flags...)
	if err != nil {
		return err
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.mu.Lock()
	r.manager, r.wanted, r.stop = manager, true, stop
	r.starts++
	r.mu.Unlock()
	r.kept.Go(func() { r.keep(keeping, manager) })
	return nil
}

// keep restarts the manager whenever it ends, as a kubelet does.
func (r *replica) keep(ctx context.Context, manager *lab.Manager) {
	for {
		<-manager.Ended()
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(restartBackoff):
			}
			next, err := manager.Restart(ctx)
			if err == nil {
				manager = next
				break
			}
		}
		r.mu.Lock()
		r.manager = manager
		r.starts++
		wanted := r.wanted
		r.mu.Unlock()
		if !wanted {
			return
		}
	}
}

func (r *replica) current() *lab.Manager {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.manager
}

func (r *replica) signal(signal syscall.Signal) error {
	manager := r.current()
	if manager == nil || !manager.Running() {
		return fmt.Errorf("sending %s to manager %s: it does not run", signal, r.name)
	}
	r.mu.Lock()
	r.stopped = signal == syscall.SIGSTOP || r.stopped && signal != syscall.SIGCONT
	r.mu.Unlock()
	return syscall.Kill(manager.PID(), signal)
}

// end stops the manager for good.
func (r *replica) end() error {
	r.mu.Lock()
	r.wanted = false
	stop := r.stop
	r.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	manager := r.current()
	err := manager.Stop(stopTimeout)
	if err != nil {
		err = errors.Join(err, manager.Kill())
	}
	r.kept.Wait()
	if last := r.current(); last != manager {
		err = errors.Join(err, last.Stop(stopTimeout))
	}
	return err
}

func (r *replica) close() error {
	err := r.end()
	r.proxy.Close()
	if r.disk {
		err = errors.Join(err, syscall.Unmount(r.workDir(), syscall.MNT_DETACH))
	}
	return err
}

// leader returns the manager that wrote the Lease last, and another one.
func (w *world) leader() (leads, waits *replica) {
	leads, waits = w.replicas[0], w.replicas[1]
	if waits.lastRenewed().After(leads.lastRenewed()) {
		leads, waits = waits, leads
	}
	return leads, waits
}
