package contract

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// poolFields are the fields, all strings, of a pool that a device takes an address from.
var poolFields = []string{"group", "resource", "name"}

// checkAddressClaims checks that the fields in spec.addressClaims exist and can hold pools and
// addresses.
func checkAddressClaims(meta *Metadata, providerSpec module.Variable) {
	claims := meta.Spec.AddressClaims
	if claims == nil {
		return
	}
	const at = "spec.addressClaims"
	list, exists := fieldType(providerSpec.Type, claims.Devices)
	if !exists || !list.IsListType() || !list.ElementType().IsObjectType() {
		meta.AtField(at+".devices", fmt.Sprintf("is %q, which is not a list of objects in var.provider_spec", claims.Devices),
			fieldFix)
		return
	}
	device := list.ElementType()
	if !holdsPools(device, claims.Pools) {
		meta.AtField(at+".pools",
			fmt.Sprintf("is %q, which is not a list of objects with the strings group, resource and name in %s", claims.Pools,
				claims.Devices), fieldFix)
	}
	if !device.HasAttribute(claims.Addresses) || !device.AttributeType(claims.Addresses).Equals(cty.List(cty.String)) {
		meta.AtField(at+".addresses", fmt.Sprintf("is %q, which is not a list of strings in %s", claims.Addresses,
			claims.Devices), fieldFix)
	}
	if claims.Gateway != "" && (!device.HasAttribute(claims.Gateway) ||
		device.AttributeType(claims.Gateway) != cty.String) {
		meta.AtField(at+".gateway", fmt.Sprintf("is %q, which is not a string in %s", claims.Gateway, claims.Devices),
			fieldFix)
	}
}

// holdsPools reports whether a field of a device is a list of pools.
func holdsPools(device cty.Type, field string) bool {
	if !device.HasAttribute(field) {
		return false
	}
	list := device.AttributeType(field)
	return list.IsListType() && list.ElementType().IsObjectType() &&
		!slices.ContainsFunc(poolFields, func(name string) bool {
			return !list.ElementType().HasAttribute(name) || list.ElementType().AttributeType(name) != cty.String
		})
}
