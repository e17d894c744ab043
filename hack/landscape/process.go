package landscape

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

// Programs in bin/.
const (
	// MCM runs the controllers of MachineDeployments and MachineSets.
	MCM = "machine-controller-manager"
	// Driver runs the controller of Machines with this project's driver.
	Driver = "machine-controller-manager-provider-iac"
)

// Process is a running program.
type Process struct {
	lab.Process
	port string
}

// Start starts a program with MCM's rights. It adds flags to the required ones.
func (l *Landscape) Start(program string, flags ...string) (*Process, error) {
	port, err := lab.FreePort()
	if err != nil {
		return nil, err
	}
	arguments := append([]string{
		"--control-kubeconfig", l.kubeconfig("control"), "--target-kubeconfig", l.kubeconfig("target"),
		"--namespace", Namespace,
		"--port", port, "--leader-elect=false", "--v=3",
	}, flags...)
	p := &Process{Process: lab.Process{What: program, Log: filepath.Join(l.dir, program+".log")}, port: port}
	if err := p.Start(l.Lab.Path("bin", program), arguments, []string{"HOME=" + l.dir}); err != nil {
		return nil, err
	}
	return p, nil
}

// Metric returns the sum of a metric's samples.
func (p *Process) Metric(ctx context.Context, name string) (float64, error) {
	code, metrics, err := lab.Get(ctx, "http://127.0.0.1:"+p.port+"/metrics", "")
	if err == nil && (code != http.StatusOK || !strings.Contains(metrics, "\n"+name)) {
		err = fmt.Errorf("%s has no metric %s (status %d)", p.What, name, code)
	}
	return lab.Sum(metrics, name), err
}
