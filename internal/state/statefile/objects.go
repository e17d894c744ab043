package statefile

import "encoding/json"

// Objects returns the attributes of the managed resources in a valid state, by address, except for resources that exist
// only in the state. They may hold secrets.
func Objects(raw []byte, parsed *State) (map[string]json.RawMessage, error) {
	return formatOf(parsed.Format).objects(raw)
}

func terraformAttributes(raw []byte) (map[string]json.RawMessage, error) {
	read, err := terraformObjects(raw)
	objects := map[string]json.RawMessage{}
	for _, one := range read {
		if one.deposed == "" {
			objects[one.address] = one.attributes
		}
	}
	return objects, err
}

// object is one instance of a managed resource.
type object struct {
	address, kind, deposed string
	attributes             json.RawMessage
}

// terraformObjects lists the instances of managed resources in a Terraform state, except for resources that exist only
// in the state.
func terraformObjects(raw []byte) ([]object, error) {
	var file stateFile
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, Malformed(describeJSON(err))
	}
	var found []object
	for _, r := range file.Resources {
		if r.Mode == ModeData || r.Provider == builtin {
			continue
		}
		address := r.resource().Address()
		for _, i := range r.Instances {
			at := address
			if len(i.Index) > 0 {
				at += "[" + string(i.Index) + "]"
			}
			found = append(found, object{address: at, kind: r.Type, deposed: i.Deposed, attributes: i.Attributes})
		}
	}
	return found, nil
}

func checkpointObjects(raw []byte) (map[string]json.RawMessage, error) {
	_, latest, err := parseDeployment(raw)
	if err != nil {
		return nil, err
	}
	objects := map[string]json.RawMessage{}
	for _, one := range latest.Resources {
		resource, err := one.resource()
		if err != nil || !one.made() || one.External || one.Delete {
			continue
		}
		outputs, err := json.Marshal(one.Outputs)
		if err != nil {
			return nil, Malformed("its outputs cannot be read")
		}
		objects[resource.Address()] = outputs
	}
	return objects, nil
}
