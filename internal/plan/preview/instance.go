package preview

import (
	"slices"

	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

// describe returns what a request says without a plan.
func describe(r *Request) *Set {
	machine := r.Machine()
	set := &Set{
		Module: r.Module.Reference(), ProviderSpec: r.ProviderSpec, Source: r.Source, Secrets: r.Secrets,
		MachineName: machine.Name, Generated: machine.Name == "", Warnings: slices.Clone(r.Warnings),
	}
	set.Kind, set.Namespace, set.Name = r.Title()
	set.Replicas, _ = r.Replicas()
	if set.Generated {
		set.MachineName = machine.GenerateName
	}
	if size := r.Size; size != nil && (size.CPU != 0 || size.MemoryMiB != 0) {
		set.Size = &Size{CPU: size.CPU, MemoryMiB: size.MemoryMiB, GPU: size.GPU, Architecture: size.Architecture}
	}
	if r.Shown.Image != "" {
		set.Image = Value{Value: r.Shown.Image}
	}
	for _, disk := range r.Shown.Disks {
		one := Disk{Size: Value{Unknown: true}, Type: disk.Type}
		if disk.Size != "" {
			one.Size = Value{Value: disk.Size}
		}
		set.Disks = append(set.Disks, one)
	}
	return set
}

// addressesOf reads the output addresses, a list in which entries, or parts of them, may be unknown.
func addressesOf(outputs offline.Values) []Address {
	list := outputs.Member("addresses")
	if list.Unknown == true {
		return []Address{{Address: Value{Unknown: true}}}
	}
	var found []Address
	for n := range list.Len() {
		one := list.Item(n)
		kind, _ := one.Member("type").After.(string)
		found = append(found, Address{Type: kind, Address: outputValue(one, "address")})
	}
	return found
}
