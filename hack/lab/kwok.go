package lab

import (
	"context"
	"path/filepath"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
)

// StartKWOK starts bin/kwok with the rights of a ServiceAccount in the operator's namespace, waits until it is ready,
// and returns its stop function.
func (l *Lab) StartKWOK(ctx context.Context, account string) (stop func() error, err error) {
	kubeconfig := filepath.Join(l.dir, "kwok.kubeconfig")
	if err := cluster.ServiceAccountKubeconfig(ctx, l.kubeconfig, Namespace, account, kubeconfig); err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	arguments, err := cluster.PlayNodes(l.Path("bin"), filepath.Join(l.dir, "kwok-stages"), kubeconfig, address)
	if err != nil {
		return nil, err
	}
	p := &Process{What: "KWOK", Log: filepath.Join(l.dir, "logs", "kwok.log")}
	if err := p.Start(l.Path("bin", "kwok"), arguments, []string{"HOME=" + l.dir}); err != nil {
		return nil, err
	}
	if err := l.ready(ctx, p, address); err != nil {
		return nil, err
	}
	return func() error { return p.Stop(time.Minute) }, nil
}
