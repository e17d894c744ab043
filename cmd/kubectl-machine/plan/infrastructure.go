package plan

import (
	"fmt"
	"io"
	"maps"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/config"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
)

// takeInfrastructure sets what no flag sets from the Infrastructure that a flag names, or that is
// among the manifests.
func (o *planOptions) takeInfrastructure(manifests []preview.File, stdin io.Reader) error {
	o.cluster.ClusterValues = o.clusterValues
	files := manifests
	if o.infrastructure != "" {
		var err error
		if files, err = preview.ReadFiles([]string{o.infrastructure}, false, stdin); err != nil {
			return err
		}
	}
	found, err := preview.Infrastructure(files)
	if err != nil {
		return err
	}
	if found == nil {
		if o.infrastructure != "" {
			return fmt.Errorf("--infrastructure names %s, which has no Infrastructure of config.openshift.io/v1; write 'kubectl get infrastructure cluster -o yaml' into it", o.infrastructure)
		}
		return nil
	}
	settings := config.Of(found)
	o.cluster.Known = settings.Cluster
	known := map[string]string{}
	for name, value := range settings.ClusterValues {
		if name != module.ValueClusterID || o.cluster.ID == "" {
			known[name] = value
		}
	}
	maps.Copy(known, o.clusterValues)
	o.clusterValues = known
	o.take(nil)
	return nil
}
