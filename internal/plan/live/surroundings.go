package live

import (
	"context"
	"fmt"
	"maps"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators/iac"
)

// prospect answers the prospect of a Machine that is edited, with what its providers see of the cluster where they are configured.
func (o Options) prospect(ctx context.Context, outlook *iac.Outlook, machine, edited *machinev1beta1.Machine) (*iac.Prospect, error) {
	found, err := outlook.Of(ctx, machine, edited)
	if err != nil || !o.Refresh || o.Surroundings == nil {
		return found, err
	}
	for p := found; p != nil; p = p.Instead {
		if err := o.surround(ctx, p); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// surround adds what a run with the prospect's module sees of the cluster. What is the Machine's own counts more, as in a run.
func (o Options) surround(ctx context.Context, p *iac.Prospect) error {
	around, sensitive, err := o.Surroundings.Environment(ctx, p.Module.Spec().Environment)
	if err != nil {
		return fmt.Errorf("finding out how the infrastructure is reached: %w", err)
	}
	environment := map[string]string{}
	maps.Copy(environment, around)
	maps.Copy(environment, p.Environment)
	p.Environment, p.Sensitive = environment, slices.Concat(p.Sensitive, sensitive)
	return nil
}
