package ownership

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

// stateSource is a resource in a Terraform state that a Machine takes over.
type stateSource struct{ path, address string }

func (s *stateSource) register(command *cobra.Command) {
	command.Flags().StringVar(&s.path, "from-state", "",
		"File with the Terraform state of the instance, from 'tofu state pull'.")
	command.Flags().StringVar(&s.address, "address", "",
		"Address of the instance in the state, such as aws_instance.worker[3] or module.a.aws_instance.worker[\"b\"].")
	command.MarkFlagsRequiredTogether("from-state", "address")
	_ = command.RegisterFlagCompletionFunc("address", cobra.NoFileCompletions)
}

// validate checks the flags before anything is read.
func (s *stateSource) validate(names []string) error {
	if s.path != "" && len(names) != 1 {
		return errOneMachine
	}
	return nil
}

// prepare adds the ID of the instance to the annotations of its Machine, and returns what may be
// requested: only the plan while the state still contains the instance. It writes to the error
// output how to remove it from there.
func (s *stateSource) prepare(command *cobra.Command, machine *machinev1beta1.Machine, asked lifecycle.Adoption,
	annotations map[string]string) (lifecycle.Adoption, error) {
	id, lineage, err := s.read()
	if err != nil {
		return "", err
	}
	from := lineage + " " + s.address
	known, knownFrom := machine.Annotations[lifecycle.AdoptIDAnnotation],
		machine.Annotations[lifecycle.AdoptFromAnnotation]
	switch {
	case id == "" && known == "":
		return "", fmt.Errorf("the state %s has no resource %s; 'tofu state list' lists the addresses; nothing was changed",
			s.path, s.address)
	case id == "" && knownFrom != from:
		return "",
			fmt.Errorf("the state %s with the lineage %s has no resource %s, but the adoption of %s was planned from %q (lineage and address): name that state and that address, so that "+
				"it shows that the instance has no other owner; nothing was changed", s.path, lineage, s.address,
				machine.Name, knownFrom)
	case id == "":
		annotations[lifecycle.AdoptIDAnnotation] = known // it was removed after the adoption was planned
		return asked, nil
	case known != "" && known != id:
		return "",
			fmt.Errorf("the Machine %s is to get the instance %s, and %s in %s is %s; remove the annotation %s to choose anew; nothing was changed",
				machine.Name, known, s.address, s.path, id, lifecycle.AdoptIDAnnotation)
	}
	annotations[lifecycle.AdoptFromAnnotation] = from
	annotations[lifecycle.AdoptIDAnnotation] = id
	if asked == lifecycle.AdoptionAdopt {
		fmt.Fprintf(command.ErrOrStderr(),
			"note: %s still has the instance, which must not have two owners, so that its adoption is only planned. Remove it there, write the state to %s "+
				"again, and repeat this command:\n\n  tofu state rm %s\n\nor, with an apply:\n\n  removed {\n    from = %s\n    lifecycle {\n      destroy = false\n    }\n  }\n\n",
			s.path, s.path, quoted(s.address), withoutKeys(s.address))
	}
	return lifecycle.AdoptionPlan, nil
}

// quoted quotes an address for a shell.
func quoted(address string) string { return "'" + strings.ReplaceAll(address, "'", `'\''`) + "'" }

// withoutKeys returns an address without the keys of instances, as in 'from' of a removed block.
func withoutKeys(address string) string {
	var out strings.Builder
	depth := 0
	for _, r := range address {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth == 0:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// read returns the ID of the resource, or "" if the state does not contain it, and the state's
// lineage.
func (s *stateSource) read() (id, lineage string, err error) {
	raw, err := os.ReadFile(s.path)
	if err != nil {
		return "", "", fmt.Errorf("reading the Terraform state: %w", err)
	}
	var read struct {
		Version   int           `json:"version"`
		Lineage   string        `json:"lineage"`
		Resources []stateObject `json:"resources"`
	}
	if err := json.Unmarshal(raw, &read); err != nil || read.Version != 4 || read.Lineage == "" {
		return "",
			"",
			fmt.Errorf("the file %s is no Terraform state of version 4: write it with 'tofu state pull' or 'terraform state pull'", s.path)
	}
	for _, resource := range read.Resources {
		for _, instance := range resource.Instances {
			if resource.Mode != string(tfjson.ManagedResourceMode) || resource.address(instance.Key) != s.address ||
				instance.Deposed != "" {
				continue
			}
			if instance.Attributes.ID == "" {
				return "", "", errors.New("the resource " + s.address +
					" has no ID in the state, so that it cannot be found in the infrastructure")
			}
			return instance.Attributes.ID, read.Lineage, nil
		}
	}
	return "", read.Lineage, nil
}

// stateObject is a resource of a state.
type stateObject struct {
	Module    string `json:"module"`
	Mode      string `json:"mode"`
	Type      string `json:"type"`
	Name      string `json:"name"`
	Instances []struct {
		Key        any    `json:"index_key"`
		Deposed    string `json:"deposed"`
		Attributes struct {
			ID string `json:"id"`
		} `json:"attributes"`
	} `json:"instances"`
}

// address returns the address of one of the resource's instances.
func (o stateObject) address(key any) string {
	address := o.Type + "." + o.Name
	if o.Module != "" {
		address = o.Module + "." + address
	}
	switch key := key.(type) {
	case float64:
		return address + "[" + strconv.FormatFloat(key, 'f', -1, 64) + "]"
	case string:
		return address + "[" + strconv.Quote(key) + "]"
	}
	return address
}
