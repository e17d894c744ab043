package preview

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/yaml"
)

const kindInfrastructure = "Infrastructure"

func (i *item) isInfrastructure() bool {
	return i.meta.Kind == kindInfrastructure && i.meta.APIVersion == configv1.GroupVersion.String()
}

// Infrastructure returns the Infrastructure in files, or nil. It ignores unknown fields, since the cluster that wrote
// it may be newer.
func Infrastructure(files []File) (*configv1.Infrastructure, error) {
	var found *configv1.Infrastructure
	var first *item
	var problems Problems
	for _, file := range files {
		for _, document := range split(file) {
			items, _ := itemsOf(document) // Read reports problems with other objects
			for _, one := range items {
				if !one.isInfrastructure() {
					continue
				}
				if first != nil {
					problems = append(problems,
						one.problem("kind",
							fmt.Sprintf("there is another in %s:%d", first.file, first.line(first.under)),
							"keep that of the cluster"))
					continue
				}
				first, found = one, &configv1.Infrastructure{}
				if err := yaml.Unmarshal(one.raw, found); err != nil {
					problems = append(problems,
						one.problem("kind", err.Error(), "write it as 'kubectl get infrastructure cluster -o yaml' "+
							"does"))
				}
			}
		}
	}
	return found, problems.asError()
}
